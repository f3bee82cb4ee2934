// docs/upgrading.md: what a release promises is there in later versions. `npm run release` renews the golden lists.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Command } from '../../src/commands/command.ts';
import { flagOf } from '../../src/commands/options/command-line.ts';
import { allSettings } from '../../src/config/config.ts';
import { version } from '../../src/config/package.ts';
import { root } from '../support/documents/page.ts';
import { lost, lostSinceRelease } from '../support/documents/released.ts';
import { useGateway } from '../support/gateway.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const gateway = useGateway('PostgreSQL');
const promised = {
  paths: { '/a/': { get: { parameters: [{ name: 'page', in: 'query' }], summary: 'A' } } },
  enum: ['x', 'y'],
  properties: { title: { type: 'string' } },
};

test('every setting is there, with its default', () => {
  const settings = allSettings.map(({ name, whenUnsetText }) => [name, whenUnsetText]);
  expect(lostSinceRelease('settings', Object.fromEntries(settings))).toEqual([]);
});

test('every command is there, with its options and exit codes', async () => {
  const flags = new Set(allSettings.map(({ name }) => flagOf(name)));
  const commands = new Map<string, object>();
  const files = readdirSync(join(root, 'src/commands')).filter((file) => file.endsWith('.ts'));
  // These run something when they are imported.
  for (const name of files.map((file) => file.slice(0, -3)).toSorted()) {
    if (['cli', 'run'].includes(name)) continue;
    const { line }: Partial<Command> = await import(`../../src/commands/${name}.ts`);
    if (!line) continue;
    const command = line();
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    const [, codes = '0, 1, 2, 130'] = /Exit code: ([^.]*)\./.exec(help) ?? [];
    const options = command.options.filter(({ long }) => !flags.has(long ?? ''));
    commands.set(name, {
      arguments: command.registeredArguments.map((one) => ({
        name: one.name(),
        required: one.required,
      })),
      options: Object.fromEntries(options.map((one) => [one.long, one.flags])),
      exitCodes: codes.match(/\b\d+\b/g)?.toSorted(),
    });
  }
  expect(lostSinceRelease('commands', Object.fromEntries(commands))).toEqual([]);
});

test('every migration is there, byte for byte', () => {
  const folders = readdirSync(join(root, 'prisma/migrations')).filter((name) => /^\d/.test(name));
  const sums = folders.toSorted().map((name) => {
    const text = read(`prisma/migrations/${name}/migration.sql`);
    return [name, createHash('sha256').update(text).digest('hex')];
  });
  expect(lostSinceRelease('migrations', Object.fromEntries(sums))).toEqual([]);
});

test('the OpenAPI document has all that it had', async () => {
  const document = (await gateway.get('/api/openapi.json')).json();
  expect(document.info.version).toBe(version);
  expect(lostSinceRelease('openapi', document)).toEqual([]);
});

test('the schema is the released one in a release', () => {
  const head = `# The schema of version ${version}, the last one released. test/graphql/schema-changes.test.ts compares with it.\n`;
  const path = 'test/golden/released.graphql';
  if (process.env['RELEASE']) {
    writeFileSync(join(root, path), head + read('docs/schema.graphql'));
  }
  expect(read(path)).toMatch(/^# The schema of version \d+\.\d+\.\d+, /);
});

test.each<[lost: string, edit: (copy: typeof promised) => unknown]>([
  ['', (copy) => Object.assign(copy.properties, { brand: {} }) && copy.enum.unshift('w')],
  ['', (copy) => Object.assign(copy.paths['/a/'].get, { summary: 'B' })],
  ['/paths//a/', (copy) => Reflect.deleteProperty(copy.paths, '/a/')],
  ['/enum/"y"', (copy) => copy.enum.pop()],
  ['/properties/title/type', (copy) => Object.assign(copy.properties.title, { type: 'null' })],
  ['/properties/title', (copy) => Reflect.deleteProperty(copy.properties, 'title')],
  ['/paths//a//get/parameters/page', (copy) => copy.paths['/a/'].get.parameters.pop()],
])('the comparison names what is lost: "%s"', (path, edit) => {
  const copy = structuredClone(promised);
  edit(copy);
  expect(lost(promised, copy).join()).toMatch(path === '' ? /^$/ : path);
});
