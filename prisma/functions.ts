// Part of npm run generate: writes the functions of prisma/functions into the migrations. A function stands in a migration
// between two comments; the last migration that names it has its present text, and earlier ones, once released, are history.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const migrations = fileURLToPath(new URL('migrations/', import.meta.url));
const functions = fileURLToPath(new URL('functions/', import.meta.url));

const block = /^-- FUNCTION (\w+)\n(?:[\s\S]*?^-- END \1\n)?/gm;

/** The migrations with the functions as they are now, by path. */
export function fillMigrations(): Map<string, string> {
  const filled = new Map<string, string>();
  const done = new Set<string>();
  const paths = readdirSync(migrations, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${migrations}${name}/migration.sql`);
  for (const path of paths.sort().reverse()) {
    const text = readFileSync(path, 'utf8').replace(block, (found, name: string) => {
      if (done.has(name)) return found;
      done.add(name);
      return `-- FUNCTION ${name}\n${readFunction(name)}-- END ${name}\n`;
    });
    filled.set(path, text);
  }
  const unused = readFunctionNames().filter((name) => !done.has(name));
  if (unused.length > 0) throw new Error(`No migration creates ${unused.join(', ')}.`);
  return filled;
}

export function readFunctionNames(): string[] {
  return readdirSync(functions).map((file) => file.replace(/\.sql$/, ''));
}

export function readFunction(name: string): string {
  return readFileSync(`${functions}${name}.sql`, 'utf8');
}

export function writeMigrations(): void {
  for (const [path, text] of fillMigrations()) writeFileSync(path, text);
}
