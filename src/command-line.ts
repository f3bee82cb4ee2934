// What a person types to run a command of this service, in messages that say so.

/** @param command such as `counts rebuild` */
export function typed(command: string): string {
  const [name, ...words] = command.split(' ');
  const script = `npm run ${name}${words.length > 0 ? ` -- ${words.join(' ')}` : ''}`;
  return `"outfit-gateway ${command}" (in a checkout "${script}")`;
}
