// The Dockerfile without Docker: its build is replayed with the files that .dockerignore leaves, and what it makes is
// started and asked as the image says.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeFolder } from '../support/cli/folder.ts';
import { baseOf, run, stop } from '../support/cli/process.ts';
import { pairsOf, readDockerfile, valuesOf } from '../support/documents/dockerfile.ts';
import { root } from '../support/documents/page.ts';
import { findFreePort } from '../support/http/free-port.js';

const place = makeFolder(afterAll);
const { stages } = readDockerfile();
const [build = [], image = []] = stages;
const app = join(place, 'app');

/** What the build may see, as .dockerignore says: `*` leaves nothing, `!` adds, what follows takes away. */
function copyContext(to: string): void {
  const [everything, ...lines] = readFileSync(join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(everything).toBe('*');
  const removed = lines.filter((line) => !line.startsWith('!'));
  expect(removed).toEqual(['src/generated', '**/*.md']);
  for (const name of lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))) {
    const filter = (path: string) =>
      relative(root, path) !== 'src/generated' && (path.endsWith(name) || !path.endsWith('.md'));
    cpSync(join(root, name), join(to, name), { recursive: true, filter });
  }
}

beforeAll(() => {
  const [context, work] = [join(place, 'context'), join(place, 'build')];
  for (const folder of [context, work]) mkdirSync(folder);
  copyContext(context);
  for (const { name, value } of build) {
    if (name === 'COPY') {
      const names = value.split(' ');
      const to = names.pop() ?? '';
      for (const from of names) {
        const target = join(work, to, to.endsWith('/') && from !== '.' ? basename(from) : '');
        mkdirSync(dirname(target), { recursive: true });
        cpSync(join(context, from), target, { recursive: true });
      }
    } else if (name === 'RUN' && value.endsWith(' npm ci --ignore-scripts')) {
      // What it would install is here already, but for packages that are folders of this one.
      const { packages } = JSON.parse(readFileSync(join(work, 'package-lock.json'), 'utf8'));
      const folders = Object.keys(packages).filter((path) => !path.startsWith('node_modules'));
      expect(folders.filter((path) => !existsSync(join(work, path)))).toEqual([]);
      symlinkSync(join(root, 'node_modules'), join(work, 'node_modules'));
    } else if (name === 'RUN') {
      const command = value.replace(/^--mount=\S+ /, '').replace(/ \/app$/, ` ${app}`);
      execFileSync('sh', ['-ec', command], { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
    } else expect(['FROM', 'WORKDIR']).toContain(name);
  }
}, 600_000);

const entry: readonly string[] = JSON.parse(valuesOf(image, 'ENTRYPOINT')[0] ?? '').map(
  (word: string) => word.replace(/^\/app\b/, app),
);
const command: readonly string[] = JSON.parse(valuesOf(image, 'CMD')[0] ?? '');
const [, healthCheck = ''] = / CMD (\[.*\])$/.exec(valuesOf(image, 'HEALTHCHECK')[0] ?? '') ?? [];

/** The exit code of the health check, with the settings of the container. */
function checkHealth(environment: Record<string, string>): number | null {
  const [program = '', ...args]: string[] = JSON.parse(healthCheck);
  const env = { PATH: process.env['PATH'], ...environment };
  return spawnSync(program, args, { env, timeout: 3_000 }).status;
}

test('serves by its entry and command, is healthy while it does, and takes other commands', async () => {
  expect(entry[0]).toBe('node');
  const settings = { ...pairsOf(image, 'ENV'), DATA_DIR: join(place, 'data') };
  const environment = { ...settings, HOST: '127.0.0.1', PORT: String(await findFreePort()) };
  expect(checkHealth(environment)).not.toBe(0);

  const server = run(
    [...entry.slice(1), ...command],
    { ...environment, LOG_FORMAT: 'pretty' },
    app,
  );
  const base = await baseOf(server);
  expect((await fetch(`${base}/api/outfits/`)).status).toBe(200);
  expect(checkHealth(environment)).toBe(0);
  expect(await stop(server), server.errors()).toBe(0);
  expect(checkHealth(environment)).not.toBe(0);

  const migrate = run([...entry.slice(1), 'migrate'], environment, app);
  expect(await migrate.ended, migrate.errors()).toBe(0);
  expect(migrate.output()).toContain('up to date');
}, 180_000);
