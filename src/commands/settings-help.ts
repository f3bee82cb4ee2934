// What the help says of the settings: the option, what it may be, and what it is otherwise.
import { type SettingDescription, settingDescriptions } from '../config.ts';
import { flagOf } from './arguments.ts';

const lineLength = 100;

export function describeSettings(): string {
  const indent = 2 + Math.max(...settingDescriptions.map(({ name }) => flagged(name).length)) + 2;
  return settingDescriptions
    .map((setting) => {
      const [first, ...others] = wrap(meaningOf(setting), lineLength - indent);
      const lines = [
        `  ${flagged(setting.name)}`.padEnd(indent) + first,
        ...others.map((line) => ' '.repeat(indent) + line),
      ];
      return lines.join('\n');
    })
    .join('\n');
}

const flagged = (name: string) => `--${flagOf(name)}`;

const meaningOf = ({ allowed, whenUnset }: SettingDescription) =>
  `${allowed} (default: ${whenUnset})`;

/** Breaks a text between words. */
function wrap(text: string, length: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= length) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(word);
  }
  return lines;
}
