// Django REST Framework of Debian behind gunicorn, as an old service with credentials of every form.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, vi } from 'vitest';
import { findFreePort } from '../http/free-port.js';

const packages = '/usr/lib/python3/dist-packages';
const needed = ['django', 'rest_framework', 'gunicorn', 'jwt'].map((name) => `${packages}/${name}`);

/** CI installs it; elsewhere it may be missing. */
export const hasDjango = needed.every((file) => existsSync(file));

/** It can use PostgreSQL. */
export const hasPsycopg = existsSync(`${packages}/psycopg2`);

const app = fileURLToPath(new URL('django/', import.meta.url));

type Credential = 'token' | 'session' | 'access' | 'refresh' | 'expired';
export type DjangoUser = Readonly<Record<Credential, string> & { id: number }>;

/** @param database URL of an empty database of PostgreSQL; otherwise it has a file */
export async function startDjango(secret: string, database?: string) {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-django-'));
  const env = {
    PATH: process.env['PATH'],
    SECRET: secret,
    DATABASE: database ?? join(folder, 'db.sqlite3'),
    PYTHONDONTWRITEBYTECODE: '1',
  };
  const options = { cwd: app, env, encoding: 'utf8' } as const;
  const printed = execFileSync('/usr/bin/python3', ['app.py', 'setup'], options);
  const users: Readonly<Record<'ann' | 'bob', DjangoUser>> = JSON.parse(printed);
  const port = await findFreePort();
  // Longer than the pauses of a test on a busy machine: a connection that ends meanwhile fails the next request.
  const listening = ['-b', `127.0.0.1:${port}`, '--threads', '4', '--keep-alive', '60'];
  const args = ['-m', 'gunicorn', ...listening, 'app:application'];
  const server = spawn('/usr/bin/python3', args, { cwd: app, env, stdio: 'ignore' });
  const base = `http://127.0.0.1:${port}`;
  const answer = () => fetch(`${base}/api/outfits/`);
  await vi.waitFor(async () => expect((await answer()).ok).toBe(true), 20_000);
  return {
    base,
    users,
    async close() {
      const ended = once(server, 'exit');
      server.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
