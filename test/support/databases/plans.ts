// How PostgreSQL runs the statements that the service sends.
import pg from 'pg';
import { expect } from 'vitest';
import type { TestGateway } from '../gateway.ts';
import { connectTo, databaseUrlOf } from './connections.ts';
import { sentBy } from './statements.ts';

export interface PlanNode {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

export const nodesOf = (plan: PlanNode): PlanNode[] => [
  plan,
  ...(plan.Plans ?? []).flatMap(nodesOf),
];

export const blocksOf = (plan: PlanNode) => plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];

/** How the statements that the service sends for a query are run: each for its values, and if it is named, for any. */
export async function plansOf(
  { database, post }: TestGateway,
  query: string,
  ask: TestGateway['post'] = post,
): Promise<PlanNode[][]> {
  const statements = await sentBy({ database }, async () =>
    expect(await ask(query)).not.toHaveProperty('errors'),
  );
  const client = await connectTo(databaseUrlOf(database.pool));
  try {
    const plans: PlanNode[][] = [];
    for (const statement of statements) {
      const modes = statement.name
        ? ['force_custom_plan', 'force_generic_plan']
        : ['force_custom_plan'];
      plans.push([]);
      for (const mode of modes) plans.at(-1)?.push(await explain(client, statement, mode));
    }
    return plans;
  } finally {
    await client.end();
  }
}

async function explain(
  client: pg.Client,
  { text, values = [] }: pg.QueryConfig,
  mode: string,
): Promise<PlanNode> {
  await client.query(`SET plan_cache_mode = ${mode}; DEALLOCATE ALL`);
  await client.query(`PREPARE explained AS ${text}`);
  const literals = values.map((value) =>
    value === null
      ? 'NULL'
      : pg.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : String(value)),
  );
  const execute = `EXECUTE explained${literals.length > 0 ? `(${literals.join(', ')})` : ''}`;
  // What a session reads of the catalog is read once only.
  await client.query(execute);
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${execute}`);
  return rows[0]['QUERY PLAN'][0].Plan;
}
