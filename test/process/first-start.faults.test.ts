// The first start, cut short at many moments: what comes after it is complete.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  expectWhole,
  interrupt,
  measureStart,
  newEnvironment,
} from '../support/cli/first-start.ts';
import { baseOf, dist, listing, run, runServer, stop } from '../support/cli/process.ts';
import { databaseKinds } from '../support/gateway.ts';

test.each(databaseKinds)(
  'a start that is cut short again and again comes to its end: on %s',
  async (kind) => {
    const length = await measureStart(kind);
    const environment = await newEnvironment(kind);
    for (const [percent, signal] of [
      [20, 'SIGKILL'],
      [80, 'SIGTERM'],
      [50, 'SIGKILL'],
      [95, 'SIGINT'],
    ] as const) {
      await interrupt(environment, signal, (length * percent) / 100);
    }
    await expectWhole(environment);
  },
);

// Of about a thousand, which the template has.
test.each([2, 300])('SIGKILL when the folder has %i entries', async (entries) => {
  const environment = await newEnvironment('embedded');
  const folder = join(environment['DATA_DIR'] ?? '', 'pgdata');
  const list = () => (existsSync(folder) ? readdirSync(folder, { recursive: true }) : []);
  const server = runServer(environment);
  while (list().length < entries) await sleep(1);
  server.child.kill('SIGKILL');
  expect(await server.ended).toBe('SIGKILL');
  expect(list()).toContain('unfinished');
  await expectWhole(environment);
  expect(list()).not.toContain('unfinished');
});

test('three gateways that start at once on one PostgreSQL fill it once', async () => {
  const environment = await newEnvironment('PostgreSQL');
  await run([`${dist}commands/cli.js`, 'migrate'], environment).ended;
  const servers = [1, 2, 3].map(() => runServer(environment));
  for (const server of servers) {
    expect(await listing(await baseOf(server))).toMatchObject({ count: 2_400 });
  }
  const saved = servers.filter((server) => server.output().includes('2400 demonstration outfits'));
  expect(saved).toHaveLength(1);
  for (const server of servers) expect(await stop(server)).toBe(0);
  await expectWhole(environment);
});
