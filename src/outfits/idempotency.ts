import { createHash } from 'node:crypto';
import type { Prisma, PrismaClient } from '../generated/prisma/client.ts';
import type { OutfitRow } from './row.ts';
import { takeTimestamp } from './timestamps.ts';

/** A request that its client may send again, with the key that it chose for it. */
export interface RepeatableRequest {
  readonly userId: number;
  readonly key: string;
  /** What the request asks for, as it came. */
  readonly input: unknown;
}

/** The key came with another input before. */
export class KeyReusedError extends Error {
  constructor() {
    super('This Idempotency-Key was used for another request: use a new key for a new request.');
  }
}

/** Microseconds for which an answer is kept. */
const keptFor = 24n * 3_600_000_000n;

/**
 * The answer that the request got when it came first; undefined when this is the first time.
 * @throws KeyReusedError
 */
export async function findFirstAnswer(
  client: Prisma.TransactionClient,
  { userId, key, input }: RepeatableRequest,
): Promise<OutfitRow | undefined> {
  const created = { gte: takeTimestamp() - keptFor };
  const first = await client.idempotencyKey.findFirst({ where: { userId, key, created } });
  if (first && first.inputHash !== hash(input)) throw new KeyReusedError();
  return first ? parseRow(first.answer) : undefined;
}

/**
 * Creates an outfit once per request. Of two that come at the same time, the second waits for the
 * first, because their keys are the same row.
 * @throws KeyReusedError
 */
export async function createOnce(
  prisma: PrismaClient,
  request: RepeatableRequest,
  create: (transaction: Prisma.TransactionClient) => Promise<OutfitRow>,
): Promise<OutfitRow> {
  const { userId, key, input } = request;
  return prisma.$transaction(async (transaction) => {
    const created = takeTimestamp();
    await transaction.idempotencyKey.deleteMany({
      where: { userId, created: { lt: created - keptFor } },
    });
    const { count } = await transaction.idempotencyKey.createMany({
      data: { userId, key, inputHash: hash(input), created, answer: {} },
      skipDuplicates: true,
    });
    const first = count === 0 ? await findFirstAnswer(transaction, request) : undefined;
    if (first) return first;
    const row = await create(transaction);
    await transaction.idempotencyKey.updateMany({
      where: { userId, key },
      data: { answer: formatRow(row) },
    });
    return row;
  });
}

function hash(input: unknown): string {
  return createHash('sha256').update(JSON.stringify(input)).digest('base64url');
}

function formatRow(row: OutfitRow): Prisma.InputJsonObject {
  return { ...row, created: String(row.created), modified: String(row.modified) };
}

function parseRow(answer: Prisma.JsonValue): OutfitRow {
  const row = answer as unknown as OutfitRow;
  return { ...row, created: BigInt(row.created), modified: BigInt(row.modified) };
}
