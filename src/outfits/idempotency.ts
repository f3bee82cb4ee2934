import { createHash } from 'node:crypto';
import type { Prisma, PrismaClient } from '../generated/prisma/client.ts';
import type { OutfitRow } from './row.ts';
import { takeTimestamp } from './timestamps.ts';

/** A key that a client chose for one request, so that sending it again does nothing more. */
export interface Repeatable {
  readonly userId: number;
  readonly key: string;
  /** What the request asks for. */
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
 * Creates an outfit once per key. Of two requests with one key that come at the same time, the
 * second waits for the first, because their keys are the same row.
 * @throws KeyReusedError
 */
export async function createOnce(
  prisma: PrismaClient,
  { userId, key, input }: Repeatable,
  create: (transaction: Prisma.TransactionClient) => Promise<OutfitRow>,
): Promise<OutfitRow> {
  const created = takeTimestamp();
  const inputHash = createHash('sha256').update(JSON.stringify(input)).digest('base64url');
  await prisma.idempotencyKey.deleteMany({ where: { created: { lt: created - keptFor } } });
  return prisma.$transaction(async (transaction) => {
    const { count } = await transaction.idempotencyKey.createMany({
      data: { userId, key, inputHash, created, answer: {} },
      skipDuplicates: true,
    });
    const where = { userId_key: { userId, key } };
    if (count === 0) {
      const first = await transaction.idempotencyKey.findUniqueOrThrow({ where });
      if (first.inputHash !== inputHash) throw new KeyReusedError();
      return parseRow(first.answer);
    }
    const row = await create(transaction);
    await transaction.idempotencyKey.update({ where, data: { answer: formatRow(row) } });
    return row;
  });
}

function formatRow(row: OutfitRow): Prisma.InputJsonObject {
  return { ...row, created: String(row.created), modified: String(row.modified) };
}

function parseRow(answer: Prisma.JsonValue): OutfitRow {
  const row = answer as unknown as OutfitRow;
  return { ...row, created: BigInt(row.created), modified: BigInt(row.modified) };
}
