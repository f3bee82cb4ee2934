// A first start of the embedded database begins with the template that the build has made.
import { appendFileSync, cpSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { dist, environmentOf, run } from '../support/cli/process.ts';
import { migrationList } from '../support/databases/schema-engine.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

async function migrate(folder: string, environment: Record<string, string>): Promise<string> {
  const command = run([join(folder, 'commands/cli.js'), 'migrate'], environment);
  expect(await command.ended, command.errors()).toBe(0);
  return command.output();
}

test('a new embedded database has all migrations before the first is applied', async () => {
  const environment = await environmentOf('embedded');
  const folder = environment['DATA_DIR'] ?? '';
  expect(await migrate(dist, environment)).toBe(
    `embedded database in ${folder}: 0 migration(s) applied, up to date.\n`,
  );
  const files = readdirSync(join(folder, 'pgdata'), { recursive: true, encoding: 'utf8' });
  expect(files).not.toContain('unfinished');
  // Only its owner reads it.
  for (const path of ['', 'base', 'PG_VERSION', 'global/pg_control']) {
    expect(statSync(join(folder, 'pgdata', path)).mode & 0o077).toBe(0);
  }
});

test('a template of other migrations is not used', async () => {
  const environment = await environmentOf('embedded');
  const place = (await environmentOf('embedded'))['DATA_DIR'] ?? '';
  for (const name of ['dist', 'package.json', 'prisma']) {
    cpSync(join(root, name), join(place, name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'));
  const names = migrationList().migrationDirectories.map(({ path }) => path);
  appendFileSync(join(place, `prisma/migrations/${names.at(-1)}/migration.sql`), '\n-- edited\n');

  const output = await migrate(join(place, 'dist'), environment);
  expect(output.match(/(?<=^applying )\S+/gm)).toEqual(names);
  expect(await migrate(join(place, 'dist'), environment)).toContain(': 0 migration(s) applied');
});
