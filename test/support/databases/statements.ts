// What a gateway asks its database.
import type pg from 'pg';
import { vi } from 'vitest';
import type { TestGateway } from '../gateway.ts';

/** The statements by which `work` was answered: all but the snapshots that say what was committed. */
export async function statementsOf(
  { database: { pool } }: Pick<TestGateway, 'database'>,
  work: () => Promise<unknown>,
): Promise<string[]> {
  const spies = [vi.spyOn(pool, 'query'), vi.spyOn(pool, 'queryInLane')];
  try {
    await work();
    const sent = spies.flatMap(({ mock }) => mock.calls.map(([statement]) => textOf(statement)));
    return sent.filter((text) => !isSnapshot(text));
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** The same as they are sent, each once, but those by which Prisma opens its connection. */
export async function sentBy(
  { database: { pool } }: Pick<TestGateway, 'database'>,
  work: () => Promise<unknown>,
): Promise<pg.QueryConfig[]> {
  const spies = [vi.spyOn(pool, 'query'), vi.spyOn(pool, 'queryInLane')];
  try {
    await work();
    // What needs no lane is then sent by query, too.
    const sent = new Set(spies.flatMap(({ mock }) => mock.calls.map(([statement]) => statement)));
    return [...sent].filter(
      (statement) => typeof statement === 'object' && !isSnapshot(textOf(statement)),
    ) as never;
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** @param statement what a pool was given */
export const textOf = (statement: unknown): string =>
  typeof statement === 'string' ? statement : (statement as { readonly text: string }).text;

export const isSnapshot = (text: string) => text.includes('pg_current_snapshot');
