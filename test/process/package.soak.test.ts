// npm run package and npm pack: what they make runs with Node.js alone, where no node_modules is above it.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { baseOf, run, stop } from '../support/cli/process.ts';
import { Shell } from '../support/cli/shell.ts';
import { deadLinks } from '../support/documents/page.ts';
import { secret } from '../support/http/tokens.ts';

const script = fileURLToPath(new URL('../../.ci/archive.js', import.meta.url));
const made = mkdtempSync(join(tmpdir(), 'outfit-gateway-made-'));
const unpacked = mkdtempSync(join(tmpdir(), 'outfit-gateway-unpacked-'));
const installed = mkdtempSync(join(tmpdir(), 'outfit-gateway-installed-'));
const environment = { DATA_DIR: join(unpacked, 'data'), AUTH_JWT_SECRET: secret };

let folder = '';
let scripts: Record<string, string> = {};
let bin: Record<string, string> = {};
let version = '';

beforeAll(() => {
  execFileSync(process.execPath, [script, made]);
  const archive = readdirSync(made).find((name) => name.endsWith('.tar.gz')) ?? '';
  execFileSync('tar', ['-xzf', join(made, archive), '-C', unpacked]);
  rmSync(made, { recursive: true });
  folder = join(unpacked, readdirSync(unpacked)[0] ?? '');
  const manifest = readFileSync(join(folder, 'package.json'), 'utf8');
  ({ scripts, bin, version } = JSON.parse(manifest));
}, 180_000);

afterAll(() => {
  for (const path of [unpacked, installed]) rmSync(path, { recursive: true, force: true });
});

/** What npm would run, without npm. */
function runScript(name: string, ...args: string[]) {
  const [, ...words] = scripts[name]?.split(' ') ?? [];
  const paths = words.map((word) => (word.startsWith('dist/') ? join(folder, word) : word));
  return run([...paths, ...args], { PORT: '0', ...environment });
}

async function outputOf(name: string, ...args: string[]): Promise<string> {
  const command = runScript(name, ...args);
  expect(await command.ended, command.errors()).toBe(0);
  return command.output();
}

describe('the package', () => {
  test('serves REST, GraphQL and GraphiQL, is written to, and ends', async () => {
    const token = (await outputOf('token', '--user', '1')).trim();
    const server = runScript('start');
    const base = await baseOf(server);

    const page = await (await fetch(`${base}/api/outfits/`)).text();
    expect(JSON.parse(page)).toMatchObject({ count: 2400, previous: null });
    writeFileSync(join(unpacked, 'page.json'), page);

    const graphql = await fetch(`${base}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: '{"query":"mutation { likeOutfit(id: \\"T3V0Zml0OjE=\\") { outfit { id: databaseId } } }"}',
    });
    expect(await graphql.json()).toEqual({ data: { likeOutfit: { outfit: { id: 1 } } } });

    const graphiql = await fetch(`${base}/graphql`, { headers: { Accept: 'text/html' } });
    expect(graphiql.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const [, script] = /<script defer src="([^"]+)"/.exec(await graphiql.text()) ?? [];
    expect(await (await fetch(`${base}/${script}`)).text()).toContain('gateway-examples');

    const docs = await fetch(`${base}/api/docs`, { headers: { Accept: 'text/html' } });
    const files = [...(await docs.text()).matchAll(/"(docs\/[^"]+)"/g)];
    expect(files).toHaveLength(4);
    for (const [, file] of files) expect((await fetch(`${base}/api/${file}`)).status).toBe(200);
    const document = (await (await fetch(`${base}/api/openapi.json`)).json()) as { info: object };
    expect(document.info).toHaveProperty('version', version);

    expect(await stop(server), server.errors()).toBe(0);
  }, 180_000);

  test('has every command', async () => {
    expect(Object.keys(scripts)).toEqual(
      expect.arrayContaining(['start', 'migrate', 'import', 'verify', 'token', 'counts']),
    );
    for (const name of Object.keys(scripts)) {
      if (name !== 'start') await outputOf(name, '--help');
    }
    expect(await outputOf('import', join(unpacked, 'page.json'))).toContain('20 records read');
    expect(await outputOf('counts', 'check')).toContain('all counts are right');
  }, 180_000);

  test('has the command outfit-gateway, which npm links', async () => {
    const file = join(folder, bin['outfit-gateway'] ?? '');
    expect(readFileSync(file, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    const asked = run([file, '--version'], {});
    expect(await asked.ended).toBe(0);
    expect(folder.endsWith(`outfit-gateway-${asked.output().trim()}`)).toBe(true);
  });

  test('holds what runs, and none of what builds', () => {
    // All packages are bundled, and their licences go with them.
    expect(readdirSync(folder)).not.toContain('node_modules');
    const licences = readFileSync(join(folder, 'dist/licences.txt'), 'utf8');
    expect(licences).toMatch(/^fastify [\d.]+: MIT\n\n.*^Copyright .*^----/ms);
    for (const name of ['typescript', 'prisma', 'vitest']) {
      expect(licences).not.toMatch(new RegExp(`^${name} `, 'm'));
    }
    const heads = [...licences.matchAll(/^(?=@?[a-z])(\S+) (\d\S*): /gm)];
    const { components } = JSON.parse(readFileSync(join(folder, 'dist/sbom.cdx.json'), 'utf8'));
    expect(components.map((one: { 'bom-ref': string }) => one['bom-ref']).toSorted()).toEqual(
      [...new Set(heads.map(([, name, version]) => `${name}@${version}`))].toSorted(),
    );
    const template = expect.stringMatching(/^template-\w+\.br$/);
    expect(readdirSync(join(folder, 'dist/database'))).toContainEqual(template);
    expect(sizeOf(folder)).toBeLessThan(50e6);
  });

  test('has documents whose links lead into the package', () => {
    expect(deadLinks(folder)).toEqual([]);
  });
});

test('is audited by what it bundles', async () => {
  let advisories: object | undefined;
  const registry = createServer(({ method }, response) => {
    // npm also asks for each package that it is told of.
    const status = method === 'GET' ? 404 : advisories ? 200 : 405;
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(advisories ?? {}));
  }).listen(0, '127.0.0.1');
  await once(registry, 'listening');
  const { port } = registry.address() as AddressInfo;
  const audit = async (...packages: string[]) => {
    const advisory = { id: 1, url: 'https://a.test/1', title: 'Bad', severity: 'high' };
    const found = packages.map((name) => [name, [{ ...advisory, vulnerable_versions: '*' }]]);
    if (packages.length > 0) advisories = Object.fromEntries(found);
    const script = fileURLToPath(new URL('../../.ci/audit.js', import.meta.url));
    const settings = {
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_cache: unpacked,
    };
    const asked = run([script], { ...settings, npm_config_fetch_retries: '0' });
    return [await asked.ended, asked.output()];
  };
  expect(await audit()).toEqual([0, expect.stringMatching(/^Not audited, .*405/)]);
  expect(await audit('vitest')).toEqual([0, expect.stringMatching(/ 0 with known vuln/)]);
  const told = expect.stringMatching(
    /^fastify: high: Bad \(https:\/\/a.test\/1\)\n.* 1 with known/,
  );
  expect(await audit('vitest', 'fastify')).toEqual([1, told]);
  registry.close();
}, 60_000);

test('npm installs what npm pack makes into an empty folder, without other packages, and npx starts it', async () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const shell = new Shell(installed, unpacked, { PORT: '0', ...environment, LOG_FORMAT: 'pretty' });
  try {
    // dist/ is built already.
    const pack = `npm pack --ignore-scripts --pack-destination="$PWD" "${root}"`;
    for (const command of [pack, 'npm install --omit=dev ./outfit-gateway-*.tgz']) {
      expect(await shell.run(command)).toMatchObject({ failed: '' });
    }
    const modules = join(installed, 'node_modules');
    const place = join(modules, 'outfit-gateway');
    expect(readdirSync(modules).filter((name) => !name.startsWith('.'))).toEqual([
      'outfit-gateway',
    ]);
    expect(sizeOf(modules)).toBeLessThan(90e6);
    expect(deadLinks(place)).toEqual([]);
    expect(JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))).toMatchObject({
      version,
      engines: { node: '>=20.19' },
    });
    const required = `require.resolve('outfit-gateway/schema.graphql')`;
    expect(await shell.run(`node -p "${required}"`)).toMatchObject({ failed: '' });

    const server = await shell.start('npx outfit-gateway');
    await expect.poll(server.output, { timeout: 60_000 }).toContain('GraphiQL: ');
    const [, base] = /REST: +(http:\/\/[^/\s]+)\/api/.exec(server.output()) ?? [];
    expect(await (await fetch(`${base}/api/outfits/`)).json()).toHaveProperty('count', 2400);
    await server.end();
  } finally {
    await shell.close();
  }
}, 180_000);

function sizeOf(path: string): number {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .reduce((sum, file) => sum + statSync(join(file.parentPath, file.name)).size, 0);
}
