// How PostgreSQL runs the statements that the service sends.
import pg from 'pg';
import { expect, vi } from 'vitest';
import type { TestGateway } from '../gateway.ts';
import { connectTo } from './connections.ts';

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

/** The statements that the service sends for a query, as they are. */
export async function capture(
  { database, post }: TestGateway,
  query: string,
  ask: TestGateway['post'] = post,
): Promise<pg.QueryConfig[]> {
  const sent = vi.spyOn(database.pool, 'query');
  try {
    expect(await ask(query)).not.toHaveProperty('errors');
    return sent.mock.calls.map(([statement]) => statement as unknown as pg.QueryConfig);
  } finally {
    sent.mockRestore();
  }
}

/** The plan of a prepared statement: one for these values, or one for any. */
export async function explain(
  { database }: TestGateway,
  { text, values = [] }: pg.QueryConfig,
  mode: 'force_custom_plan' | 'force_generic_plan' = 'force_custom_plan',
): Promise<PlanNode> {
  const client = await connectTo(database.pool.options.connectionString);
  try {
    await client.query(`SET plan_cache_mode = ${mode}`);
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
  } finally {
    await client.end();
  }
}
