// Debian's PgBouncer in front of a PostgreSQL of the tests.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { findFreePort } from '../http/free-port.js';
import { throughPort } from './demo-postgres.ts';

const program = '/usr/sbin/pgbouncer';

/** Where it is not, its tests are skipped; CI installs it. */
export const hasPgBouncer = existsSync(program);

/**
 * Starts it with nothing but what it must be told, and fewer connections than a gateway has: those
 * of a pool of transactions change all the time.
 * @param database URL of the database that it leads to
 * @param settings more lines of its configuration
 */
export async function startPgBouncer(
  database: string,
  mode: 'session' | 'transaction',
  settings = '',
) {
  const { hostname, port, username, password } = new URL(database);
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-pgbouncer-'));
  chmodSync(folder, 0o755);
  const own = await findFreePort();
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${mode === 'session' ? 30 : 4}
${settings}
`,
  );
  // It does not run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn(program, [...user, file], { stdio: 'ignore' });
  await vi.waitFor(async () => {
    const socket = connect(own, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  }, 20_000);
  return {
    /** The URL of the database, by way of the pooler. */
    url: throughPort(database, own),
    async close() {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
