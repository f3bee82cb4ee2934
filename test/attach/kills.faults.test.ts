// SIGKILL of the first copy, and of the database meanwhile, while the old service writes: run again, it goes on to the end.
import { expect, onTestFinished, test } from 'vitest';
import { dist, run } from '../support/cli/process.ts';
import { execute } from '../support/databases/connections.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { bothWays, fileOf, makeOldTables } from '../support/legacy/old-tables.ts';

test('attach that is killed, and whose database is killed, in the first copy goes on when it is run again', async () => {
  const postgres = await startEmbeddedPostgres();
  onTestFinished(() => postgres.close());
  const { old, url, environment } = await makeOldTables(postgres.url);
  await old.query(`INSERT INTO shop.outfit (title, person_id) SELECT 'many ' || n, 1 + n % 20 FROM generate_series(1, 15000) n;
    INSERT INTO shop.picture SELECT id, 'p' FROM shop.outfit ON CONFLICT DO NOTHING;
    INSERT INTO shop.likes SELECT id, 1 + id % 20 FROM shop.outfit ON CONFLICT DO NOTHING`);
  const file = fileOf(bothWays);
  const attach = (given = file) => run([`${dist}commands/cli.js`, 'attach', given], environment);
  const copied = async () => {
    const { rows } = await execute(url, 'SELECT count(*)::int AS outfits FROM gateway.outfits');
    return rows[0].outfits as number;
  };
  /** What the old service does between two attempts, to rows that are copied and that are not. */
  const write = (round: number) =>
    execute(
      url,
      `UPDATE shop.outfit SET title = 'again' WHERE id % 1000 = ${round};
       DELETE FROM shop.likes WHERE outfit_id % 1000 = ${round + 10};
       DELETE FROM shop.outfit WHERE id % 1000 = ${round + 20}`,
    );
  for (const [round, victim] of ['command', 'database'].entries()) {
    const before = await copied();
    const attaching = attach();
    await expect.poll(copied, { timeout: 60_000, interval: 20 }).toBeGreaterThan(before + 500);
    if (victim === 'command') attaching.child.kill('SIGKILL');
    else await postgres.crash();
    const code = await attaching.ended;
    expect(code).toBe(victim === 'command' ? 'SIGKILL' : 2);
    if (victim === 'database') await postgres.start();
    expect(await copied()).toBeLessThan(15_000);
    await write(round);
  }
  const attaching = attach();
  expect([await attaching.ended, attaching.output()]).toEqual([
    0,
    expect.stringMatching(/Both sides are equal\.\n$/),
  ]);
  const checking = attach('check');
  expect([await checking.ended, checking.output()]).toEqual([0, 'Both sides are equal.\n']);
});
