// Debian's HAProxy with the file of deploy/, before gateways of a test.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { makeFolder } from '../cli/folder.ts';
import { findFreePort } from './free-port.js';

export const haproxy = '/usr/sbin/haproxy';

/** Where it is not, its tests are skipped; CI installs it. */
export const hasHaproxy = existsSync(haproxy);

/** @param ports of the gateways @returns the base of its addresses */
export async function startHaproxy(ports: readonly number[]): Promise<string> {
  const own = await findFreePort();
  const given = readFileSync(new URL('../../../deploy/haproxy.cfg', import.meta.url), 'utf8');
  const servers = ports.map((port, at) => `    server gateway-${at + 1} 127.0.0.1:${port}\n`);
  runHaproxy(
    given
      .replace('bind :4000', `bind 127.0.0.1:${own}`)
      .replace(/(?: {4}server gateway-\d 127\.0\.0\.1:400\d\n)+/g, servers.join('')),
  );
  return `http://127.0.0.1:${own}`;
}

/** Runs it until the test has ended. */
export function runHaproxy(configuration: string): void {
  const file = join(makeFolder(onTestFinished), 'haproxy.cfg');
  writeFileSync(file, configuration);
  const child = spawn(haproxy, ['-db', '-f', file], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
}
