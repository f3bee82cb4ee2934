// Debian's etcd, Patroni and HAProxy with the files of docs/replicas.md, on addresses of the loopback interface.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { root } from '../documents/page.ts';
import { hasHaproxy, runHaproxy } from '../http/haproxy.ts';
import { programs } from './debian-postgres.ts';

const files = ['/usr/bin/patroni', '/usr/bin/etcd', '/usr/sbin/runuser', `${programs}/initdb`];

/** CI installs them; elsewhere they may be missing. */
export const hasPatroni = hasHaproxy && files.every((file) => existsSync(file));

/** Two PostgreSQL under Patroni and the proxy that leads to the primary, as the page has them, until the test has ended. */
export function startPatroni() {
  const [, page = ''] = readFileSync(join(root, 'docs/replicas.md'), 'utf8').split('## Failover\n');
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-patroni-'));
  chmodSync(folder, 0o777);
  // Another network for each process of tests: 10.0.0.11 is 127.30.57.11, say.
  const network = `127.${10 + (process.pid % 200)}.${1 + (Math.floor(process.pid / 200) % 250)}.`;
  const block = (title: string) => {
    const [, text = ''] = page.split(`\`\`\`${title}\n`);
    return (text.split('\n```')[0] ?? '').replaceAll('10.0.0.', network).concat('\n');
  };
  const environmentOf = (text: string) =>
    Object.fromEntries(
      [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
    );
  // PostgreSQL refuses to run as root.
  const numberOf = (flag: string) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  const owner = process.getuid?.() === 0 ? { uid: numberOf('-u'), gid: numberOf('-g') } : {};

  const etcd = environmentOf(block('text title=/etc/default/etcd'));
  const store = spawn('/usr/bin/etcd', {
    env: { ...etcd, ETCD_DATA_DIR: join(folder, 'etcd') },
    stdio: 'ignore',
  });
  runHaproxy(block('text title=haproxy.cfg'));

  const start = (name: string) => {
    const home = join(folder, name);
    mkdirSync(home);
    chmodSync(home, 0o777);
    const file = join(home, 'patroni.yml');
    const data = join(home, 'data');
    const text = block('yaml title=patroni.yml')
      .replaceAll('pg1', name)
      .replaceAll(`${network}11`, `${network}1${name.slice(2)}`)
      .replace('/var/lib/postgresql/15/outfits', data)
      .replace('/usr/lib/postgresql/15/bin', `${programs}`);
    // The sockets' usual folder is that of the machine's own server.
    writeFileSync(file, `${text}  parameters: { unix_socket_directories: ${home} }\n`);
    const log = join(home, 'log');
    const redirected = `exec /usr/bin/patroni ${file} >>${log} 2>&1`;
    const child = spawn('/bin/sh', ['-c', redirected], {
      ...owner,
      ...{ cwd: home, env: { PATH: process.env['PATH'], HOME: home } },
      stdio: 'ignore',
    });
    return { name, data, child, host: `${network}1${name.slice(2)}`, log };
  };
  const servers = [start('pg1'), start('pg2')];
  onTestFinished(() => {
    for (const { child, data } of servers) killAll(child, data);
    store.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  });

  /** The server that answers a path of Patroni with 200. */
  const find = (path: string) =>
    vi.waitFor(
      async () => {
        for (const server of servers) {
          const answer = await fetch(`http://${server.host}:8008${path}`, {
            method: 'OPTIONS',
          }).catch(() => undefined);
          if (answer?.status === 200) return server;
        }
        throw new Error(
          `No server is ${path}: ${servers.map(({ log }) => readFileSync(log, 'utf8')).join('\n')}`,
        );
      },
      { timeout: 45_000, interval: 100 },
    );
  const settings = environmentOf(block('sh title=.env'));
  return {
    /** Of a gateway. */
    settings,
    /** What the operator runs in it once. */
    setUp: block('sql title=psql'),
    superuser: (host: string, database = 'postgres') =>
      `postgresql://postgres:secret@${host}:5432/${database}`,
    primary: () => find('/primary'),
    synchronous: () => find('/synchronous'),
    /** Ends PostgreSQL of a server as a crash does; Patroni goes on. */
    killPostgres: ({ data }: { data: string }) => killTree(data),
    /** Ends everything on the machine of a server. */
    killMachine: ({ child, data }: { child: ChildProcess; data: string }) => killAll(child, data),
  };
}

function killAll(child: ChildProcess, data: string): void {
  child.kill('SIGKILL');
  killTree(data);
}

/** PostgreSQL and the processes that it has started. */
function killTree(data: string): void {
  try {
    const server = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0] ?? '';
    const children = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8');
    for (const id of [server, ...children.trim().split(' ')]) process.kill(Number(id), 'SIGKILL');
  } catch {
    // It runs no more.
  }
}
