// The first start, cut short at many moments: what comes after it is complete.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  expectWhole,
  interrupt,
  measureStart,
  newEnvironment,
  type Signal,
} from '../support/cli/first-start.ts';
import { baseOf, dist, run, runServer, stop } from '../support/cli/process.ts';
import { type DatabaseKind, databaseKinds } from '../support/gateway.ts';

const signals: readonly Signal[] = ['SIGKILL', 'SIGTERM', 'SIGKILL', 'SIGINT'];
/** How many moments, spread over the whole start. */
const moments = Number(process.env['FIRST_START_KILLS'] ?? 1);

describe.each(databaseKinds)('%s', (kind: DatabaseKind) => {
  let length: number;
  beforeAll(async () => {
    length = await measureStart(kind);
  });

  const cases = Array.from({ length: moments }, (_, index) => ({
    signal: signals[index % signals.length] ?? 'SIGKILL',
    percent: Math.round((100 * (index + 0.5)) / moments),
  }));
  test.each(cases)('$signal at $percent % of the first start', async ({ signal, percent }) => {
    const environment = await newEnvironment(kind);
    await interrupt(kind, environment, signal, (length * percent) / 100);
    await expectWhole(kind, environment);
  });

  test('a start that is cut short again and again comes to its end', async () => {
    const environment = await newEnvironment(kind);
    for (const [index, percent] of [20, 80, 50, 95, 65].entries()) {
      const signal = signals[index % signals.length] ?? 'SIGKILL';
      await interrupt(kind, environment, signal, (length * percent) / 100);
    }
    await expectWhole(kind, environment);
  });
});

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
  await expectWhole('embedded', environment);
  expect(list()).not.toContain('unfinished');
});

test('two gateways that start at once on one PostgreSQL fill it once', async () => {
  const environment = await newEnvironment('PostgreSQL');
  await run([`${dist}commands/cli.js`, 'migrate'], environment).ended;
  const servers = [runServer(environment), runServer(environment), runServer(environment)];
  for (const server of servers) {
    const listing = await fetch(`${await baseOf(server)}/api/outfits/`);
    expect(await listing.json()).toMatchObject({ count: 2_400 });
  }
  const saved = servers.filter((server) => server.output().includes('2400 demonstration outfits'));
  expect(saved).toHaveLength(1);
  for (const server of servers) expect(await stop(server)).toBe(0);
  await expectWhole('PostgreSQL', environment);
});
