// npm run test:node24: smoke test of the built gateway with another version of Node.js, installed from npm: start,
// reads and writes by REST and GraphQL, SIGTERM.
//   node .ci/smoke.js VERSION [FOLDER]    FOLDER: what npm run package has made (default: this one)
import { spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const secret = 'a secret of the smoke test, and of nothing else';
const [version = '', path = fileURLToPath(new URL('..', import.meta.url))] = process.argv.slice(2);
const place = mkdtempSync(join(tmpdir(), 'outfit-gateway-smoke-'));

try {
  const node = installNode();
  const used = await tryGateway(node);
  console.log(`The gateway starts, reads, writes and ends with Node.js ${used}.`);
} catch (error) {
  console.error(`The smoke test with Node.js ${version} failed. ${describe(error)}`);
  process.exitCode = 1;
} finally {
  rmSync(place, { recursive: true, force: true });
}

/** The package "node" would fetch this one by an install script, which npm does not run any more. */
function installNode() {
  const name = `node-${process.platform}-${process.arch}`;
  const options = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', place];
  const { status } = spawnSync('npm', ['install', ...options, `${name}@${version}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error(`npm could not install ${name}@${version}.`);
  return join(place, 'node_modules', name, 'bin/node');
}

/**
 * @param {string} node
 * @returns {Promise<string>} the version of Node.js
 */
async function tryGateway(node) {
  const used = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim().slice(1);
  expect('the version of Node.js', used === version || used.startsWith(`${version}.`), used);
  const server = spawn(node, [join(resolve(path), 'dist/server.js')], {
    cwd: place,
    env: {
      PATH: process.env['PATH'],
      PORT: '0',
      DATA_DIR: join(place, 'data'),
      AUTH_JWT_SECRET: secret,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exit = once(server, 'exit');
  let output = '';
  for (const stream of [server.stdout, server.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  try {
    await ask(await findBase());
    server.kill('SIGTERM');
    const [code, signal] = await Promise.race([exit, expire(30)]);
    expect('the exit code after SIGTERM', code === 0, code ?? signal);
    return used;
  } catch (error) {
    throw new Error(`${describe(error)} The gateway said:\n${output}`);
  } finally {
    server.kill('SIGKILL');
    await exit;
  }

  async function findBase() {
    const found = new Promise((settle) => {
      server.stdout.on('data', () => {
        const base = /REST: +(http:\/\/[^/\s]+)\/api\/outfits\//.exec(output)?.[1];
        if (base) settle(base);
      });
    });
    const ended = exit.then(() => {
      throw new Error('It ended before it listened.');
    });
    // The first start seeds the database: seconds, but a minute on a busy machine.
    return Promise.race([found, ended, expire(180)]);
  }
}

/** @param {string} base */
async function ask(base) {
  const page = await fetchJson(`${base}/api/outfits/?ordering=-like_count&page=2`, 200);
  expect('the count by REST', page.count === 2400, page.count);
  expect('the outfits of a page', page.results.length === 20, page.results.length);

  const query = { query: '{ outfits(ordering: LIKE_COUNT_DESC, page: 2) { count } }' };
  const asked = await fetchJson(`${base}/graphql`, 200, query);
  expect('the count by GraphQL', asked.data?.outfits.count === 2400, JSON.stringify(asked));

  const outfit = { title: 'Smoke', image_key: 'outfits/00000000-0000-4000-8000-000000000000.jpeg' };
  await fetchJson(`${base}/api/outfits/`, 401, outfit);
  const created = await fetchJson(`${base}/api/outfits/`, 201, outfit, signToken(1));
  expect('the owner of what was created', created.user?.id === 1, JSON.stringify(created));
  const { count } = await fetchJson(`${base}/api/outfits/`, 200);
  expect('the count after creating', count === 2401, count);

  const html = await fetch(`${base}/graphql`, { headers: { accept: 'text/html' } });
  expect(
    'GraphiQL',
    html.status === 200 && (await html.text()).includes(' id="root"'),
    html.status,
  );
}

/**
 * @param {string} url
 * @param {number} status
 * @param {object} [body]
 * @param {string} [token]
 */
async function fetchJson(url, status, body, token) {
  const response = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: {
      'Content-Type': 'application/json',
      ...(token && { Authorization: `Bearer ${token}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  expect(`the status of ${url}`, response.status === status, `${response.status} ${text}`);
  return JSON.parse(text);
}

/** @param {number} userId */
function signToken(userId) {
  const encode = (/** @type {object} */ part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url');
  const expiry = Math.floor(Date.now() / 1000) + 600;
  const signed = `${encode({ alg: 'HS256' })}.${encode({ sub: String(userId), exp: expiry })}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

/**
 * @param {string} what
 * @param {boolean} holds
 * @param {unknown} found
 */
function expect(what, holds, found) {
  if (!holds) throw new Error(`Wrong: ${what}: ${found}.`);
}

/**
 * @param {number} seconds
 * @returns {Promise<never>}
 */
async function expire(seconds) {
  await new Promise((settle) => setTimeout(settle, seconds * 1000).unref());
  throw new Error(`Nothing came within ${seconds} s.`);
}

/** @param {unknown} error */
function describe(error) {
  return error instanceof Error ? error.message : String(error);
}
