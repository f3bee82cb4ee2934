// npm pack and npm run package: what they make runs with Node.js alone, where no other package is.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeFolder } from '../support/cli/folder.ts';
import { baseOf, run, stop } from '../support/cli/process.ts';
import { deadLinks, root } from '../support/documents/page.ts';
import { listen } from '../support/http/listen.ts';
import { secret } from '../support/http/tokens.ts';

const place = makeFolder(afterAll);
const installed = join(place, 'node_modules/outfit-gateway');
const command = join(place, 'node_modules/.bin/outfit-gateway');
const manifestOf = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

beforeAll(() => {
  // dist/ is built already.
  const pack = `npm pack --ignore-scripts --pack-destination=. "${root}"`;
  const install = 'npm install --omit=dev ./outfit-gateway-*.tgz';
  execFileSync('sh', ['-ec', `${pack}; ${install}`], { cwd: place, stdio: 'pipe' });
});

const start = (...words: string[]) =>
  run([command, ...words], { PORT: '0', DATA_DIR: join(place, 'data'), AUTH_JWT_SECRET: secret });

async function outputOf(...words: string[]): Promise<string> {
  const started = start(...words);
  expect(await started.ended, started.errors()).toBe(0);
  return started.output();
}

/** The files in a folder, with their bytes. */
const filesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name))
    .map((path) => ({ name: relative(folder, path), bytes: statSync(path).size }));

test('npm installs no other package, and a command that is executed by itself', () => {
  const modules = readdirSync(join(place, 'node_modules'));
  expect(modules.filter((name) => !name.startsWith('.'))).toEqual(['outfit-gateway']);
  const { version, engines } = manifestOf(installed);
  expect(engines).toEqual({ node: '>=20.19' });
  expect(execFileSync(command, ['--version'], { encoding: 'utf8' })).toBe(`${version}\n`);
  const required = `require.resolve('outfit-gateway/schema.graphql')`;
  execFileSync(process.execPath, ['-p', required], { cwd: place });
});

test('it serves REST, GraphQL and GraphiQL, is written to, and ends', async () => {
  const token = (await outputOf('token', '--user', '1')).trim();
  const server = start();
  const base = await baseOf(server);

  const page = await (await fetch(`${base}/api/outfits/`)).text();
  expect(JSON.parse(page)).toMatchObject({ count: 2400, previous: null });
  // As if it were the whole listing: an import of less than `count` ends with 1.
  writeFileSync(join(place, 'page.json'), page.replace('"count":2400', '"count":20'));

  const graphql = await fetch(`${base}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: '{"query":"mutation { likeOutfit(id: \\"T3V0Zml0OjE=\\") { outfit { id: databaseId } } }"}',
  });
  expect(await graphql.json()).toEqual({ data: { likeOutfit: { outfit: { id: 1 } } } });

  const graphiql = await fetch(`${base}/graphql`, { headers: { Accept: 'text/html' } });
  expect(graphiql.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const [, script] = /<script defer src="([^"]+)"/.exec(await graphiql.text()) ?? [];
  expect(await (await fetch(`${base}/${script}`)).text()).toContain('MostLiked');

  const docs = await fetch(`${base}/api/docs`, { headers: { Accept: 'text/html' } });
  expect(await docs.text()).toContain('GET /api/outfits/{id}/');
  const document = (await (await fetch(`${base}/api/openapi.json`)).json()) as { info: object };
  expect(document.info).toHaveProperty('version', manifestOf(installed).version);

  expect(await stop(server), server.errors()).toBe(0);
  expect(await outputOf('import', join(place, 'page.json'))).toContain('20 records read');
  expect(await outputOf('counts', 'check')).toContain('all counts are right');
});

test('the archive has the same files, and a script for each command', async () => {
  const made = join(place, 'made');
  execFileSync(process.execPath, [join(root, '.ci/archive.js'), made]);
  const [archive = ''] = readdirSync(made).filter((name) => name.endsWith('.tar.gz'));
  execFileSync('tar', ['-xzf', join(made, archive), '-C', place]);
  const folder = join(place, archive.replace('.tar.gz', ''));
  // A package has fewer fields where npm does not read it, and only a checkout is prepared.
  const shared = (from: string) =>
    filesOf(from).filter(({ name }) => !['package.json', '.ci/prepare.js'].includes(name));
  const inOrder = expect.arrayContaining(shared(installed));
  expect(shared(folder)).toEqual(inOrder);
  expect(shared(folder)).toHaveLength(shared(installed).length);

  const { scripts, version } = manifestOf(folder);
  expect(archive).toBe(`outfit-gateway-${version}.tar.gz`);
  expect(Object.keys(scripts)).toEqual(
    expect.arrayContaining(['start', 'migrate', 'import', 'verify', 'token', 'counts']),
  );
  for (const [name, script] of Object.entries(scripts)) {
    expect(script).toBe(`node dist/commands/cli.js ${name}`);
  }
  const asked = run([join(folder, 'dist/commands/cli.js'), '--help'], {});
  expect(await asked.ended, asked.errors()).toBe(0);
});

test('it holds what runs, and none of what builds, and its documents lead to each other', () => {
  // All packages are bundled, and their licences go with them.
  const licences = readFileSync(join(installed, 'dist/licences.txt'), 'utf8');
  expect(licences).toMatch(/^fastify [\d.]+: MIT\n\n.*^Copyright .*^----/ms);
  expect(licences).not.toMatch(/^(?:typescript|prisma|vitest) /m);
  const heads = [...licences.matchAll(/^(?=@?[a-z])(\S+) (\d\S*): /gm)];
  const { components } = JSON.parse(readFileSync(join(installed, 'dist/sbom.cdx.json'), 'utf8'));
  expect(components.map((one: { 'bom-ref': string }) => one['bom-ref']).toSorted()).toEqual(
    [...new Set(heads.map(([, name, version]) => `${name}@${version}`))].toSorted(),
  );
  const files = filesOf(installed);
  expect(files.map(({ name }) => name)).toContainEqual(
    expect.stringMatching(/^dist\/database\/template-\w+\.br$/),
  );
  expect(files.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(50e6);
  expect(deadLinks(installed)).toEqual([]);
});

test('it is audited by what it bundles', async () => {
  let advisories: object | undefined;
  const registry = createServer(({ method }, response) => {
    // npm also asks for each package that it is told of.
    const status = method === 'GET' ? 404 : advisories ? 200 : 405;
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(advisories ?? {}));
  });
  const port = await listen(registry);
  const audit = async (...packages: string[]) => {
    const advisory = { id: 1, url: 'https://a.test/1', title: 'Bad', severity: 'high' };
    const found = packages.map((name) => [name, [{ ...advisory, vulnerable_versions: '*' }]]);
    if (packages.length > 0) advisories = Object.fromEntries(found);
    const asked = run([join(root, '.ci/audit.js')], {
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_cache: place,
      npm_config_fetch_retries: '0',
    });
    return [await asked.ended, asked.output()];
  };
  expect(await audit()).toEqual([0, expect.stringMatching(/^Not audited, .*405/)]);
  expect(await audit('vitest')).toEqual([0, expect.stringMatching(/ 0 with known vuln/)]);
  const told = /^fastify: high: Bad \(https:\/\/a.test\/1\)\n.* 1 with known/;
  expect(await audit('vitest', 'fastify')).toEqual([1, expect.stringMatching(told)]);
  registry.close();
});
