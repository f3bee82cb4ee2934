// The built commands as processes of their own, ended and cleared away after each test.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import { makeMigratedPlace, makePlace, type TestPlace } from './gateway.ts';

export const dist = fileURLToPath(new URL('../dist/', import.meta.url));
const places: TestPlace[] = [];
const processes: ChildProcess[] = [];

afterEach(async () => {
  for (const child of processes.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  for (const place of places.splice(0)) await place.remove();
});

export async function environmentOf(
  kind: 'PostgreSQL' | 'embedded',
): Promise<Record<string, string>> {
  const place = await makePlace(kind);
  places.push(place);
  return place.environment;
}

/** The same, migrated already: making an embedded database takes seconds. */
export async function migratedEnvironmentOf(
  kind: 'PostgreSQL' | 'embedded',
): Promise<Record<string, string>> {
  const place = await makeMigratedPlace(kind);
  places.push(place);
  return place.environment;
}

export interface Run {
  readonly child: ChildProcess;
  /** What it has written so far. */
  output(): string;
  errors(): string;
  /** Resolves when it has ended: with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** Resolves when its output matches; rejects when it ends before. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
}

export function run(args: readonly string[], environment: Record<string, string>): Run {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  processes.push(child);
  let output = '';
  let errors = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    output += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    errors += chunk;
  });
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal);
  return {
    child,
    output: () => output,
    errors: () => errors,
    ended,
    until: (pattern) =>
      new Promise((settle, reject) => {
        const look = () => {
          const match = pattern.exec(output);
          if (match) settle(match);
        };
        child.stdout?.on('data', look);
        ended.then((code) => reject(new Error(`ended with ${code}: ${errors}${output}`)));
        look();
      }),
  };
}

export const runServer = (environment: Record<string, string>) =>
  run([`${dist}server.js`], { PORT: '0', ...environment });

/** Waits until a server listens, and gives the base of its addresses. */
export async function baseOf(server: Run): Promise<string> {
  const [, base = ''] = await server.until(/REST: +(http:\/\/[^/\s]+)\/api\/outfits\//);
  await server.until(/GraphiQL: /);
  return base;
}

export async function stop(server: Run): Promise<number | string> {
  server.child.kill('SIGTERM');
  return server.ended;
}

export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address ? address.port : 0;
}
