// Which server is the current one, decided from what connections and the probe meet.
import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { expect, test, vi } from 'vitest';
import { ServerWatch, serverIdentity } from '../../src/database/connection/server-watch.ts';
import { openForTest } from '../support/gateway.ts';

/** A connection that leads to a server. */
function clientOf(identity: string): pg.Client {
  return Object.assign(new EventEmitter(), {
    query: async () => ({ rows: [{ identity }] }),
    connection: { stream: { destroy: vi.fn() } },
  }) as unknown as pg.Client;
}

/** @param where the server that new connections of the probe lead to */
function openWatch(where: { server: string }) {
  const probe = vi.fn(async () => {
    await setImmediate();
    watch.observe(where.server);
  });
  const watch: ServerWatch = new ServerWatch(probe, () => {});
  return { watch, probe };
}

test('behind a pooler of transactions, another server is detected without a probe: with the cache off', async () => {
  const where = { server: 'A' };
  const { watch, probe } = openWatch(where);
  watch.isPerTransaction = true;
  watch.useInTransaction('A');
  where.server = 'B';
  expect(() => watch.useInTransaction('B')).toThrow('another server');
  await expect.poll(() => watch.useInTransaction('B')).toBeUndefined();
  // The one that was left is not looked for while the current one answers.
  expect(() => watch.useInTransaction('A')).toThrow('another server');
  expect(probe).toHaveBeenCalledTimes(1);
});

test('a connection that is cut while the probe gets no answer waits no longer', async () => {
  const { watch, probe } = openWatch({ server: 'B' });
  probe.mockImplementation(() => new Promise(() => {}));
  watch.observe('A');
  const client = clientOf('B');
  const joined = watch.register(client);
  const failed = expect(joined).rejects.toThrow('another server');
  await expect.poll(() => client.listenerCount('end')).toBe(1);
  client.emit('end');
  await failed;
});

test('one server has one identity, whatever the time zone of the session', async () => {
  const gateway = await openForTest('PostgreSQL', []);
  const client = await gateway.database.pool.connect();
  const identify = async (zone: string) => {
    await client.query(`SET TimeZone = '${zone}'`);
    return (await client.query(`SELECT ${serverIdentity} AS identity`)).rows;
  };
  expect(await identify('UTC')).toEqual(await identify('Europe/Berlin'));
  client.release(true);
});
