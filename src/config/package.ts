// This package: folder, version, and how its commands are typed.
import { existsSync, readFileSync } from 'node:fs';

/** The URL of the folder of package.json and dist/: this file runs in src/ in tests, and bundled below dist/. */
export const packageFolder = find(new URL('.', import.meta.url));

function find(folder: URL): URL {
  const above = new URL('..', folder);
  if (existsSync(new URL('package.json', folder)) || above.href === folder.href) return folder;
  return find(above);
}

export const version: string = JSON.parse(
  readFileSync(new URL('package.json', packageFolder), 'utf8'),
).version;

/** How an operator types a command of this package. @param command such as `counts rebuild` */
export function commandText(command: string): string {
  const [name, ...words] = command.split(' ');
  const script = `npm run ${name}${words.length > 0 ? ` -- ${words.join(' ')}` : ''}`;
  return `"outfit-gateway ${command}" (in a checkout "${script}")`;
}
