// Options of a command, and the settings as options: --page-size 50 is PAGE_SIZE=50.
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { ConfigError, type Environment, settingDescriptions } from '../config.ts';
import { messageOf } from '../errors.ts';
import { didYouMean } from './did-you-mean.ts';

type Options = NonNullable<ParseArgsConfig['options']>;

interface Given {
  readonly args: readonly string[];
  readonly env: Environment;
}

/** The name of a setting as an option. */
export const flagOf = (setting: string) => setting.toLowerCase().replaceAll('_', '-');

/** What the help of a command that reads settings says of them. */
export const settingsHelp = `Settings may be options too, such as --database-url URL or --data-dir FOLDER, and win over the
environment, which wins over the file .env. "outfit-gateway start --help" lists them.
`;

/**
 * The options and other words of a command.
 * @throws ConfigError for an option that there is not, or a word where none may be
 */
export function readArguments<Own extends Options>(
  { args }: Pick<Given, 'args'>,
  options: Own,
  allowPositionals: boolean,
) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    const words: readonly string[] = positionals;
    return { values, words };
  } catch (error) {
    throw new ConfigError(describeMistake(error, Object.keys(options)));
  }
}

/**
 * The same for a command that reads settings, with the environment that they are then read from. An
 * option of its own that has the name of a setting is not that setting.
 * @throws ConfigError for an option that there is not, or a word where none may be
 */
export function readArgumentsAndSettings<Own extends Options>(
  { args, env }: Given,
  options: Own,
  allowPositionals: boolean,
) {
  const names = settingDescriptions
    .map(({ name }) => name)
    .filter((name) => !(flagOf(name) in options));
  const flags = Object.fromEntries(
    names.map((name) => [flagOf(name), { type: 'string' }] as const),
  );
  const read = readArguments({ args }, { ...flags, ...options } as Own, allowPositionals);
  const values: Readonly<Record<string, unknown>> = read.values;
  const given = names.flatMap((name) => {
    const value = values[flagOf(name)];
    return typeof value === 'string' ? [[name, value] as const] : [];
  });
  const merged: Environment = { ...env, ...Object.fromEntries(given) };
  return { ...read, env: merged };
}

/** In one sentence, where Node.js takes up to three. */
function describeMistake(error: unknown, options: readonly string[]): string {
  const message = messageOf(error).replaceAll('\n', ' ');
  const [, silent] = /^Option '(--[^ ']+).*argument (?:missing|is ambiguous)/.exec(message) ?? [];
  if (silent !== undefined) {
    return `Option '${silent}' needs a value; one that begins with "-" is given as ${silent}=VALUE: see --help.`;
  }
  const [, unknown] = /^Unknown option '(--?[^']*)'/.exec(message) ?? [];
  if (unknown === undefined) return message;
  const names = options.map((name) => `--${name}`);
  return `Unknown option '${unknown}'${didYouMean(unknown, names)}: see --help.`;
}
