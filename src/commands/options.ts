// The command line by commander: the options of a command, and settings as options: --page-size 50 is PAGE_SIZE=50.
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import {
  ConfigError,
  type Environment,
  readValue,
  type SettingDescription,
  settingDescriptions,
  text,
} from '../config.ts';
import type { Output } from '../import/reporter.ts';
import { version } from '../package.ts';

export type CommandLine = Command;

/** A mistake in the command line that its command finds itself: exit code 2, as for all others. */
export class UsageError extends ConfigError {}

/** @param name of the command; empty: the program */
export function createLine(name: string): CommandLine {
  return new Command(`outfit-gateway ${name}`.trim())
    .helpCommand(false)
    .helpOption('-h, --help', 'prints this')
    .version(version, '--version', 'prints the version')
    .configureHelp({ helpWidth: 100 });
}

/** Reads the value of an option. */
export function as<Value>(schema: z.ZodType<Value, string>): (value: string) => Value {
  return (value) => {
    const { success, data } = schema.safeParse(value);
    if (success) return data;
    throw new InvalidArgumentError(schema.description ?? '');
  };
}

/** Reads the values of an option that may be given more than once. */
export function asList(schema = text) {
  return (value: string, before: readonly string[] = []) => [...before, as(schema)(value)];
}

/** The name of a setting as an option. */
export const flagOf = (setting: string) => `--${setting.toLowerCase().replaceAll('_', '-')}`;

class SettingOption extends Option {
  constructor(readonly setting: SettingDescription) {
    const { name, heading, schema, allowed, whenUnset } = setting;
    super(`${flagOf(name)} <value>`, `${allowed} (default: ${whenUnset})`);
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

/** Adds the settings as options, but for one whose name an option of the command has. */
export function withSettings(line: CommandLine, areListed = false): CommandLine {
  const own = line.options.map(({ long }) => long);
  const added = settingDescriptions
    .filter(({ name }) => !own.includes(flagOf(name)))
    .map((setting) => new SettingOption(setting));
  for (const one of added) line.addOption(one);
  if (areListed) return line;
  // Not hidden before: commander suggests only what it lists.
  line.on('beforeHelp', () => added.map((one) => one.hideHelp()));
  return line.addHelpText('after', settingsHelp);
}

/** The settings that a command line gives, as variables. */
export function settingsOf(line: CommandLine): Environment {
  const given = line.options.flatMap((one) => {
    const value = line.getOptionValue(one.attributeName());
    return one instanceof SettingOption && value !== undefined ? [[one.setting.name, value]] : [];
  });
  return Object.fromEntries(given);
}

/**
 * Reads a command line, or prints the help or version that it asks for, or says in one sentence what is wrong with it.
 * @returns the exit code, where that is all
 */
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

/** `error: unknown option '--prot'\n(Did you mean --port?)` in the form of other sentences. */
function sentenceOf({ message }: CommanderError): string {
  const [, flag, value, allowed] =
    /^error: option '(--[^ ']+).*?' argument '(.*)' is invalid\. (.*)$/s.exec(message) ?? [];
  if (flag) return `${flag} is ${JSON.stringify(value)}, but it may be ${allowed}.`;
  const text = message
    .replace(/^error: (.)/, (_error, first) => first.toUpperCase())
    // Its value may be a secret.
    .replace(/(?<=^Unknown option '--[^=]*)=.*?(?='\n\(Did|'$)/s, '')
    .replace('\n(Did', ' (did')
    .replace(/\. ([A-Z])/g, (_end, first) => `, ${first.toLowerCase()}`)
    .replace(/\.$/, '');
  return `${text}: see --help.`;
}
