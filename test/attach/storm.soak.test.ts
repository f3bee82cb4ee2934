// Both services write the same outfits, users and likes at the same time: nobody fails, and both sides are equal.
// ATTACH_STATEMENTS=100000 ATTACH_SEED=7 npx vitest run --config test/support/soak.config.ts test/attach/storm
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { applyPendingChanges } from '../../src/outfits/counts.ts';
import { bothWays, bothWaysByNumber, check, useOldTables } from '../support/legacy/old-tables.ts';
import { type Random, randomOf } from '../support/models/dice.ts';

const wanted = Number(process.env['ATTACH_STATEMENTS'] ?? 3_000);
const seed = Number(process.env['ATTACH_SEED'] ?? Math.floor(Math.random() * 1e9));
const writers = 4;

const makeOldTables = useOldTables();

const inOrder = (ids: number[]) => ids.toSorted((a, b) => a - b);

/**
 * Statements of the old service, each list a transaction. Rows are locked in one order, as they must be alone: an UPDATE of
 * several rows locks them in the order of its plan, and two of them deadlock without a gateway, too.
 */
function oldTransaction(random: Random, hasRows: boolean): string[] {
  const outfit = () => 1 + random(220);
  const person = () => 1 + random(22);
  const like = hasRows
    ? (which = outfit()) =>
        `INSERT INTO shop.likes SELECT o.id, p.id FROM shop.outfit o, shop.person p WHERE o.id = ${which} AND p.id = ${person()} ON CONFLICT DO NOTHING`
    : (which = outfit()) => `UPDATE shop.outfit SET likes = likes + 1 WHERE id = ${which}`;
  const kinds = [
    () => [
      `UPDATE shop.outfit SET title = 'old ${random(1000)}', private = ${random(2) === 0} WHERE id = ${outfit()}`,
    ],
    () => [
      `WITH locked AS (SELECT id FROM shop.outfit WHERE id BETWEEN ${outfit()} AND ${outfit()} ORDER BY id FOR NO KEY UPDATE)
       UPDATE shop.outfit o SET quality = quality FROM locked WHERE o.id = locked.id`,
    ],
    () => (hasRows ? inOrder([outfit(), outfit(), outfit()]).map((id) => like(id)) : [like()]),
    () => [
      hasRows
        ? `DELETE FROM shop.likes WHERE (outfit_id, person_id) = (${outfit()}, ${person()})`
        : `UPDATE shop.outfit SET likes = likes - 1 WHERE likes > 0 AND id = ${outfit()}`,
    ],
    () => [`UPDATE shop.picture SET key = 'p${random(1000)}' WHERE outfit_id = ${outfit()}`],
    () => [`UPDATE shop.person SET first_name = 'n${random(1000)}' WHERE id = ${person()}`],
    () => [
      `INSERT INTO shop.outfit (id, person_id, title) SELECT ${1 + random(200)}, id, 'again' FROM shop.person WHERE id = ${person()} ON CONFLICT DO NOTHING`,
      `INSERT INTO shop.picture SELECT id, 'p' FROM shop.outfit o WHERE NOT EXISTS (SELECT FROM shop.picture WHERE outfit_id = o.id) AND id = ${outfit()} ON CONFLICT DO NOTHING`,
    ],
    () => [`DELETE FROM shop.outfit WHERE id = ${outfit()}`],
    // Two outfits, in one order.
    () => {
      const [first = 0, second = 0] = inOrder([outfit(), outfit()]);
      const edit = (id: number) => `UPDATE shop.outfit SET private = NOT private WHERE id = ${id}`;
      return random(2) === 0 ? [edit(first), like(second)] : [like(first), edit(second)];
    },
    () => [
      `UPDATE shop.outfit SET deleted = CASE WHEN deleted IS NULL THEN now() END WHERE id = ${outfit()}`,
    ],
  ];
  return kinds[random(kinds.length)]?.() ?? [];
}

/** What a client of the gateway does. */
function ownStatement(random: Random): string {
  const [outfit, person] = [1 + random(220), 1 + random(22)];
  const kinds = [
    `save_outfit('{"id": ${outfit}, "title": "new ${random(1000)}"}')`,
    `save_outfit('{"id": ${outfit}, "image_key": "k${random(1000)}", "private": ${random(2) === 0}}', ${person})`,
    `save_like(${outfit}, ${person})`,
    `delete_like(${outfit}, ${person})`,
    random(3) === 0
      ? `delete_outfit(${outfit})`
      : `save_outfit('{"id": ${outfit}, "quality": ${2 + random(4)}}')`,
    `save_outfit('{"user_id": ${person}, "image_key": "k"}')`,
  ];
  return `SELECT 1 FROM ${kinds[random(kinds.length)]} x`;
}

/** A like or an outfit of a user or outfit that is deleted meanwhile: refused in the old service alone, too. */
const expected = /violates foreign key constraint|There is no user with the id/;

test.each([
  ['rows', bothWays, true],
  ['a number', bothWaysByNumber, false],
])(
  'storm, where likes are %s',
  async (_what, mapping, hasRows) => {
    const { url, old, environment } = await makeOldTables(mapping);
    const database = await openDatabase(readConfig(environment));
    onTestFinished(() => database.close());
    const errors = new Map<string, number>();
    let done = 0;
    const work = async (number: number, isOld: boolean) => {
      const random = randomOf(seed + number);
      const client = new pg.Client(url);
      await client.connect();
      await client.query(isOld ? 'SELECT 1' : 'SET search_path = gateway');
      while (done < wanted) {
        const statements = isOld ? oldTransaction(random, hasRows) : [ownStatement(random)];
        done += statements.length;
        await client
          .query(isOld ? `BEGIN; ${statements.join('; ')}; COMMIT` : (statements[0] ?? ''))
          .catch(async (error) => {
            await client.query('ROLLBACK');
            if (!expected.test(error.message))
              errors.set(error.message, (errors.get(error.message) ?? 0) + 1);
          });
      }
      await client.end();
    };
    const apply = setInterval(() => applyPendingChanges(database.pool).catch(() => {}), 500);
    const all = Array.from({ length: 2 * writers }, (_one, number) =>
      work(number, number % 2 === 0),
    );
    await Promise.all(all).finally(() => clearInterval(apply));
    expect([seed, [...errors]]).toEqual([seed, []]);
    const { code, stdout } = await check(environment);
    const lines = stdout
      .split('\n')
      .filter(
        (line) =>
          !/cannot be carried over .*image_key is null|likes wait for a user or outfit that is not here/.test(
            line,
          ),
      );
    expect([seed, lines]).toEqual([seed, ['Both sides are equal.', '']]);
    expect(code).toBeLessThan(2);
    const { rows } = await old.query(
      'SELECT count(*)::int AS changes FROM gateway.attached_changes',
    );
    expect(rows).toEqual([{ changes: 0 }]);
  },
  3_600_000,
);
