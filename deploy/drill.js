// node deploy/drill.js [URL]: tries whether a backup of DATABASE_URL can be lived on, in one command. It dumps the database,
// restores the dump into a new database (on the server of URL, or beside the original), compares counts and texts, serves
// the listing from it, and removes what it made. The original is only read. It needs the programs of PostgreSQL.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

if (existsSync('.env')) process.loadEnvFile('.env');
const cli = fileURLToPath(new URL('../dist/commands/cli.js', import.meta.url));
const source = process.env['DATABASE_URL'] ?? '';
const server = process.argv[2] ?? source;
const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-drill-'));
const dump = join(folder, 'outfits.dump');
const name = `outfit_gateway_drill_${Date.now()}`;

try {
  if (!URL.canParse(source) || !URL.canParse(server)) {
    throw new Error(
      'DATABASE_URL is not set: set it to the database to try. (An embedded database is its folder: copy that.)',
    );
  }
  const restored = new URL(server);
  restored.pathname = `/${name}`;
  // `dbname` would win over the path.
  for (const one of ['schema', 'dbname']) restored.searchParams.delete(one);
  const schema = new URL(source).searchParams.get('schema');
  const original = plain(source);
  const beside = plain(server);
  const copy = plain(restored);
  run('dump', 'pg_dump', ['--format=custom', `--file=${dump}`, original.url], original.env);
  run('create a database', 'psql', [beside.url, `--command=CREATE DATABASE ${name}`], beside.env);
  try {
    const options = ['--exit-on-error', '--no-owner', `--dbname=${copy.url}`];
    run('restore', 'pg_restore', [...options, dump], copy.env);
    run('analyze', 'psql', [copy.url, '--command=ANALYZE'], copy.env);
    if (schema) restored.searchParams.set('schema', schema);
    const settings = { ...process.env, DATABASE_URL: restored.href };
    run('check likes, counts and texts', process.execPath, [cli, 'counts', 'check'], settings);
    await serve(settings);
  } finally {
    const removal = `--command=DROP DATABASE ${name} WITH (FORCE)`;
    run('remove it', 'psql', [beside.url, removal], beside.env);
  }
  console.log('The backup can be restored, is whole, and is served.');
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * For the programs of PostgreSQL: without the password, which the list of processes would show, and without what only the
 * gateway reads.
 * @param {string | URL} given
 */
function plain(given) {
  const url = new URL(given);
  const { searchParams } = url;
  const password = searchParams.get('password') ?? decodeURIComponent(url.password);
  url.password = '';
  for (const one of ['password', 'schema', 'pgbouncer', 'uselibpqcompat']) searchParams.delete(one);
  // libpq reads a plus as one.
  url.search = url.search.replaceAll('+', '%20');
  const env = { ...process.env, ...(password && { PGPASSWORD: password }) };
  return { url: url.href, env };
}

/**
 * Runs a program, and says how long it took. URLs, which have passwords, are not printed.
 * @param {string} title
 * @param {string} program
 * @param {readonly string[]} args
 * @throws if it fails
 */
function run(title, program, args, env = process.env) {
  const start = performance.now();
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', env });
  if (status !== 0) {
    throw new Error(`It failed: ${title}. ${error?.message ?? `${stderr}${stdout}`.trim()}`);
  }
  console.log(`${title} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
}

/**
 * Starts a gateway on the restored database alone, and reads the first and the last page.
 * @param {NodeJS.ProcessEnv} environment
 */
async function serve(environment) {
  const alone = {
    DATABASE_READ_URLS: '',
    LEGACY_MODE: '',
    METRICS_PORT: '',
    PUBLIC_URL: '',
  };
  const rules = {
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_FORMAT: 'json',
    PRIVATE_OUTFITS: '',
    RATE_LIMIT: '',
    WRITES: 'off',
  };
  const gateway = spawn(process.execPath, [cli, 'start'], {
    env: { ...environment, ...alone, ...rules, LOG_LEVEL: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  for (const stream of [gateway.stdout, gateway.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      log += text;
    });
  }
  try {
    for (let left = 600; ; left -= 1) {
      const [, base] = /REST: +(http:\/\/[^/\s"]+)\/api/.exec(log) ?? [];
      if (base && (await fetch(`${base}/health/ready`)).ok) {
        const pages = ['', '?page=last'].map((query) => fetch(`${base}/api/outfits/${query}`));
        const [first, last] = await Promise.all(pages);
        if (!first?.ok || !last?.ok) throw new Error(`The restored listing fails:\n${log}`);
        console.log(`serve ${(await first.json()).count} outfits`);
        return;
      }
      if (gateway.exitCode !== null || left === 0)
        throw new Error(`No gateway starts on it:\n${log}`);
      await sleep(100);
    }
  } finally {
    gateway.kill();
    while (gateway.exitCode === null && gateway.signalCode === null) await sleep(50);
  }
}
