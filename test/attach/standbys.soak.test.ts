// A gateway reads from a standby of a database whose tables are attached: what the old service has committed is in the next read.
import { expect, onTestFinished, test } from 'vitest';
import * as attachCommand from '../../src/commands/attach.ts';
import { callCommand } from '../support/cli/commands.ts';
import { baseOf, metricsOf, runServer } from '../support/cli/process.ts';
import { throughPort } from '../support/databases/demo-postgres.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { bothWays, fileOf, makeOldTables } from '../support/legacy/old-tables.ts';

const rounds = 200;

test('shows what the old service has committed in the next read of a standby', async () => {
  const postgres = await startEmbeddedPostgres();
  onTestFinished(() => postgres.close());
  const standby = await postgres.addStandby();
  onTestFinished(() => standby.close());
  const { old, environment } = await makeOldTables(postgres.url);
  const attached = await callCommand(attachCommand, [fileOf(bothWays)], environment);
  expect(attached).toMatchObject({ code: 0 });
  const DATABASE_READ_URLS = throughPort(environment.DATABASE_URL, standby.port);
  const gateway = runServer({ ...environment, DATABASE_READ_URLS, METRICS_PORT: '0' });
  const base = await baseOf(gateway);
  const metrics = await metricsOf(gateway);
  const stale: unknown[] = [];
  for (let round = 1; round <= rounds; round++) {
    const id = 1 + (round % 200);
    const likes = `likes ${round}`;
    await old.query(
      `BEGIN; UPDATE shop.outfit SET title = '${likes}' WHERE id = ${id}; DELETE FROM shop.likes WHERE outfit_id = ${id};
       INSERT INTO shop.likes SELECT ${id}, id FROM shop.person WHERE id <= ${round % 20}; COMMIT`,
    );
    const record = await (await fetch(`${base}/api/outfits/${id}/`)).json();
    if (record.title !== likes || record.likes !== round % 20) stale.push({ round, record });
  }
  expect(stale).toEqual([]);
  const [, reads] = /^gateway_standby_reads_total\{.*\} (\d+)$/m.exec(await metrics()) ?? [];
  expect(Number(reads)).toBeGreaterThan(rounds / 4);
});
