// The apps of examples/, with packages of their own: installed, generated, type-checked, and built.
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const examples = fileURLToPath(new URL('../../examples/', import.meta.url));

/** Runs the tools that examples/README.md names. @throws what they say when one fails */
export async function npm(args: readonly string[], environment: Record<string, string> = {}) {
  const env = { ...process.env, ...environment };
  await promisify(execFile)('npm', [...args], { cwd: examples, env }).catch((error) => {
    throw new Error(`npm ${args.join(' ')}: ${error.stdout}${error.stderr}`);
  });
}

/** Installs the packages, if none or others are installed. */
export async function installExamples(): Promise<void> {
  const changed = (path: string) =>
    statSync(join(examples, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (changed('node_modules/.package-lock.json') > changed('package-lock.json')) return;
  await npm(['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
}
