// Tables whose changes record_changes_of() records: which commits invalidate an answer that was read from them.
import { beforeAll, expect, test } from 'vitest';
import type { Dependencies } from '../../src/database/changes/change-log.ts';
import { rowKeyOf } from '../../src/database/changes/change-log.ts';
import { useGateway } from '../support/gateway.ts';
import { extend, type Resolver } from '../support/graphql/schema-extension.ts';
import { getGraphql } from '../support/http/graphql.ts';

let reads: string[] = [];
const reading =
  (name: string, dependencies: Dependencies): Resolver =>
  async (_root, _args, { read }) => {
    reads.push(name);
    await read('SELECT', [], { dependencies: () => dependencies });
    return 1;
  };

const fields = {
  note1: { rows: { notes: [1] } },
  note2: { rows: { notes: [2] } },
  big: { rows: { notes: [rowKeyOf([9_007_199_254_740_993n])] } },
  notes: { tables: ['notes'] },
  pair: { rows: { pairs: [rowKeyOf([7, 2])] } },
  otherPair: { rows: { pairs: [rowKeyOf([2, 7])] } },
  other: { rows: { others: [1] } },
} as const satisfies Record<string, Dependencies>;
const names = Object.keys(fields) as (keyof typeof fields)[];
const schema = extend(
  `extend type Query { ${names.map((name) => `${name}: Int`).join(' ')} }`,
  Object.fromEntries(names.map((name) => [`Query.${name}`, reading(name, fields[name])])),
);

// Not on a server that other tests use: their commits invalidate what is not recorded.
const gateway = useGateway('embedded', [], {}, { schema });
beforeAll(async () => {
  // One transaction: the embedded database has one connection.
  await gateway.database.pool.query(`
    CREATE TABLE notes (id bigint PRIMARY KEY, text text NOT NULL DEFAULT '');
    CREATE TABLE pairs (b int, a int, n int, PRIMARY KEY (b, a));
    CREATE TABLE others (id int PRIMARY KEY);
    SELECT record_changes_of('notes'), record_changes_of('pairs')`);
});

const askAll = async () => {
  reads = [];
  for (const name of names) await getGraphql(gateway.app, { query: `{ ${name} }` });
  return reads;
};

// `other` is read from a table that records nothing: every commit invalidates it.
test.each<[string, readonly string[]]>([
  ['INSERT INTO notes VALUES (1), (3)', ['note1', 'notes', 'other']],
  [`UPDATE notes SET text = 'x' WHERE id = 1`, ['note1', 'notes', 'other']],
  [`UPDATE notes SET text = 'x'  WHERE id = 1`, ['other']],
  ['UPDATE notes SET id = 2 WHERE id = 1', ['note1', 'note2', 'notes', 'other']],
  ['DELETE FROM notes WHERE id = 2', ['note2', 'notes', 'other']],
  ['INSERT INTO notes VALUES (9007199254740993)', ['big', 'notes', 'other']],
  ['INSERT INTO notes VALUES (9007199254740992)', ['notes', 'other']],
  ['TRUNCATE notes', names],
  ['INSERT INTO pairs (a, b) VALUES (2, 7)', ['pair', 'other']],
  ['INSERT INTO pairs (a, b) VALUES (7, 2)', ['otherPair', 'other']],
  ['INSERT INTO others VALUES (1)', ['other']],
  ['ALTER TABLE notes DISABLE TRIGGER record_changed', names],
  // What was read from this table is not recorded any more.
  ['INSERT INTO others VALUES (2)', ['note1', 'note2', 'big', 'notes', 'other']],
  [`SELECT record_changes_of('notes')`, names],
  ['INSERT INTO others VALUES (3)', ['other']],
  ['ALTER TABLE notes ENABLE TRIGGER ALL', names],
  ['INSERT INTO others VALUES (5)', ['note1', 'note2', 'big', 'notes', 'other']],
  [`SELECT record_changes_of('notes')`, names],
  ['ALTER TABLE notes ALTER COLUMN text TYPE text USING upper(text)', names],
  [
    `SET session_replication_role = replica; INSERT INTO notes VALUES (2); RESET ALL`,
    ['note2', 'notes', 'other'],
  ],
  [`DROP TABLE notes; CREATE TABLE notes (id int PRIMARY KEY)`, names],
  ['INSERT INTO others VALUES (4)', ['note1', 'note2', 'big', 'notes', 'other']],
])('%s invalidates %j', async (statement, invalidated) => {
  await askAll();
  expect(await askAll()).toEqual([]);
  await gateway.database.pool.query(statement);
  expect(await askAll()).toEqual(invalidated);
});

test('a role without privileges on the changes writes a recorded table', async () => {
  const { pool } = gateway.database;
  await pool.query(`CREATE ROLE writer_of_pairs; GRANT INSERT ON pairs TO writer_of_pairs`);
  await pool.query(
    `BEGIN; SET LOCAL ROLE writer_of_pairs; INSERT INTO pairs (a, b) VALUES (9, 9); COMMIT`,
  );
  await pool.query(`DROP OWNED BY writer_of_pairs; DROP ROLE writer_of_pairs`);
  const { rows } = await pool.query(
    `SELECT table_name, row_key FROM outfit_changes WHERE row_key = '9,9'`,
  );
  expect(rows).toEqual([{ table_name: 'pairs', row_key: '9,9' }]);
});
