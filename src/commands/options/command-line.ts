// The command line, by commander: options of a command, and settings as options (--page-size 50 is PAGE_SIZE=50).
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { allSettings, ConfigError, type Environment, readValue } from '../../config/config.ts';
import { version } from '../../config/package.ts';
import { text } from '../../config/values.ts';
import { settingPurposes } from '../../generated/settings.ts';
import type { Output } from '../../transfer/reporter.ts';

export type CommandLine = Command;

export function createLine(
  name: string,
  options: Readonly<Record<string, Option>> = {},
): CommandLine {
  const line = new Command(`outfit-gateway ${name}`.trim())
    .helpCommand(false)
    .helpOption('-h, --help', 'prints this')
    .version(version, '--version', 'prints the version')
    .configureHelp({ helpWidth: 100 });
  return Object.values(options).reduce((all, one) => all.addOption(one), line);
}

/** An option of a command, with the type of its value. */
class TypedOption<Value> extends Option {
  declare readonly value: Value;
}

export type ValuesOf<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends TypedOption<infer Value> ? Value : never;
};

export const flag = (name: string, what: string) =>
  new TypedOption<boolean | undefined>(name, what);

export const option = <Value>(flags: string, what: string, schema: z.ZodType<Value, string>) =>
  new TypedOption<Value | undefined>(flags, what).argParser(as(schema));

export const required = <Value>(...given: Parameters<typeof option<Value>>) =>
  option(...given).makeOptionMandatory() as TypedOption<Value>;

/** @param fallback the value without the option */
export const optional = <Value>(fallback: Value, ...given: Parameters<typeof option<Value>>) =>
  option(...given).default(fallback) as TypedOption<Value>;

/** An option that may be given more than once. */
export const list = (flags: string, what: string, schema = text) =>
  new TypedOption<readonly string[] | undefined>(
    flags,
    `${what}; may be given more than once`,
  ).argParser((value, before: readonly string[] = []) => [...before, as(schema)(value)]);

/** Headers of requests. */
export const headerOption = (name: string, what: string) => list(`${name} <'Name: value'>`, what);

function as<Value>(schema: z.ZodType<Value, string>): (value: string) => Value {
  return (value) => {
    const { success, data } = schema.safeParse(value);
    if (success) return data;
    throw new InvalidArgumentError(schema.description ?? '');
  };
}

export const flagOf = (setting: string) => `--${setting.toLowerCase().replaceAll('_', '-')}`;

class SettingOption extends Option {
  constructor(readonly setting: (typeof allSettings)[number]) {
    const { name, heading, schema, whenUnsetText } = setting;
    const values = `${schema.description}; default: ${whenUnsetText}`;
    super(`${flagOf(name)} <value>`, `${settingPurposes[name]} (${values})`);
    this.helpGroup(`${heading}:`);
    // An empty value counts as unset.
    this.argParser((value) => {
      if (value !== '') readValue(flagOf(name), schema, value);
      return value;
    });
  }
}

const settingsHelp = `
Settings may be options too, such as --database-url URL or --data-dir FOLDER, and win over the
environment, which wins over the file .env. "outfit-gateway start --help" lists them.`;

/** Adds the settings as options; an option of the command with the same name wins. */
export function withSettings(line: CommandLine, areListed = false): CommandLine {
  const own = line.options.map(({ long }) => long);
  const added = allSettings
    .filter(({ name }) => !own.includes(flagOf(name)))
    .map((setting) => new SettingOption(setting));
  for (const one of added) line.addOption(one);
  if (areListed) return line;
  // Not hidden before: commander suggests only what it lists.
  line.on('beforeHelp', () => added.map((one) => one.hideHelp()));
  return line.addHelpText('after', settingsHelp);
}

export function settingsOf(line: CommandLine): Environment {
  const given = line.options.flatMap((one) => {
    const value = line.getOptionValue(one.attributeName());
    return one instanceof SettingOption && value !== undefined ? [[one.setting.name, value]] : [];
  });
  return Object.fromEntries(given);
}

/** Parses a command line; or prints help, version or an error, and gives the exit code. */
export function parseLine(
  line: CommandLine,
  args: readonly string[],
  { stdout, stderr }: { readonly stdout: Output; readonly stderr: Output },
): number | undefined {
  line.exitOverride();
  line.configureOutput({ writeOut: (text) => stdout.write(text), outputError: () => {} });
  try {
    line.parse(args, { from: 'user' });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      stderr.write(`${sentenceOf(error)}\n`);
    } else if (error instanceof ConfigError) stderr.write(`${error.message}\n`);
    else throw error;
    return 2;
  }
}

/** Turns `error: unknown option '--prot'\n(Did you mean --port?)` into one sentence. */
function sentenceOf({ message }: CommanderError): string {
  const [, flag, value, allowed] =
    /^error: option '(--[^ ']+).*?' argument '(.*)' is invalid\. (.*)$/s.exec(message) ?? [];
  if (flag) return `${flag} is ${JSON.stringify(value)}, but it must be ${allowed}.`;
  const text = message
    .replace(/^error: (.)/, (_error, first) => first.toUpperCase())
    // Its value may be a secret.
    .replace(/(?<=^Unknown option '--[^=]*)=.*?(?='\n\(Did|'$)/s, '')
    .replace('\n(Did', ' (did')
    .replace(/\. ([A-Z])/g, (_end, first) => `, ${first.toLowerCase()}`)
    .replace(/\.$/, '');
  return `${text}: see --help.`;
}
