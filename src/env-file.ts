// .env in the current folder, into the environment of the process.
import { readFileSync } from 'node:fs';
import { ConfigError } from './config.ts';
import { messageOf } from './errors.ts';

/** `NAME=value`; a value in quotes may go over lines. */
const assignment =
  /^[ \t]*(?:export[ \t]+)?[A-Za-z_][\w.-]*[ \t]*=[ \t]*(?:"[^"]*"|'[^']*'|`[^`]*`|(?!["'`])[^\n]*?)[ \t]*(?:#[^\n]*)?$/gm;

/**
 * Reads `.env`, if there is one. What is set in the environment stays.
 * @throws ConfigError when it cannot be read, or not all of it
 */
export function loadEnvFile(): void {
  try {
    const text = readFileSync('.env', 'utf8');
    // Node.js passes over what it does not understand, and a setting would be missing.
    const rest = text
      .replaceAll('\r\n', '\n')
      .replace(assignment, (lines) => lines.replace(/[^\n]/g, ''));
    const wrong = rest.split('\n').findIndex((line) => /^\s*[^\s#]/.test(line));
    if (wrong !== -1) {
      throw new ConfigError(
        `Line ${wrong + 1} of .env is not NAME=value: correct it, or begin it with # to leave it out.`,
      );
    }
    process.loadEnvFile('.env');
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
    throw new ConfigError(
      `The file .env cannot be read (${messageOf(error)}): correct or remove it.`,
    );
  }
}
