import { Prisma, type PrismaClient } from '../generated/prisma/client.ts';
import { createOnce, type RepeatableRequest } from './idempotency.ts';
import type { CheckedInput } from './input.ts';
import type { OutfitRow } from './row.ts';
import { takeTimestamp } from './timestamps.ts';
import { type Visibility, whereVisible } from './visibility.ts';

/** There is no such outfit, or none that the user may see. */
export class OutfitNotFoundError extends Error {
  constructor(id: number) {
    super(`There is no outfit with the id ${id}.`);
  }
}

/** The outfit is somebody else's. */
export class NotTheOwnerError extends Error {
  constructor(id: number) {
    super(`Outfit ${id} belongs to another user.`);
  }
}

/** The user that a token names does not exist. */
export class NoSuchUserError extends Error {}

type NewOutfit = CheckedInput & { readonly imageKey: string };

/**
 * @param request makes the same request create one outfit however often it is sent
 * @throws NoSuchUserError, KeyReusedError
 */
export async function createOutfit(
  prisma: PrismaClient,
  userId: number,
  values: NewOutfit,
  request: RepeatableRequest | undefined,
): Promise<OutfitRow> {
  const create = (client: Prisma.TransactionClient): Promise<OutfitRow> => {
    const now = takeTimestamp();
    const { device, ...columns } = toColumns(values);
    const data = {
      ...columns,
      imageKey: values.imageKey,
      imageOriginalKey: columns.imageOriginalKey ?? values.imageKey,
      ...(device ? { creationDevice: device } : {}),
      ...{ userId, created: now, modified: now },
    };
    return client.outfit.create({ data, include: { user: true } });
  };
  try {
    return await (request ? createOnce(prisma, request, create) : create(prisma));
  } catch (error) {
    throw isPrismaError(error, foreignKeyFailed) ? new NoSuchUserError() : error;
  }
}

/**
 * Changes what is given of an outfit, and notes when and on which device.
 * @throws OutfitNotFoundError, NotTheOwnerError
 */
export async function updateOutfit(
  prisma: PrismaClient,
  { id, userId }: OwnOutfit,
  visibility: Visibility,
  values: CheckedInput,
): Promise<OutfitRow> {
  await checkOwner(prisma, { id, userId }, visibility);
  const { device, ...columns } = toColumns(values);
  return orNotFound(
    id,
    prisma.outfit.update({
      where: { id },
      data: { ...columns, modified: takeTimestamp(), modificationDevice: device ?? 'web' },
      include: { user: true },
    }),
  );
}

/** @throws OutfitNotFoundError, NotTheOwnerError */
export async function deleteOutfit(
  prisma: PrismaClient,
  { id, userId }: OwnOutfit,
  visibility: Visibility,
): Promise<void> {
  await checkOwner(prisma, { id, userId }, visibility);
  await orNotFound(id, prisma.outfit.delete({ where: { id } }));
}

interface OwnOutfit {
  readonly id: number;
  /** The user who must be the owner. */
  readonly userId: number;
}

async function checkOwner(
  prisma: PrismaClient,
  { id, userId }: OwnOutfit,
  visibility: Visibility,
): Promise<void> {
  const outfit = await prisma.outfit.findFirst({
    where: { ...whereVisible(visibility), id },
    select: { userId: true },
  });
  if (!outfit) throw new OutfitNotFoundError(id);
  if (outfit.userId !== userId) throw new NotTheOwnerError(id);
}

/** A new image is its own original, unless another one is given. */
function toColumns({ imageOriginalUrl, video, ...values }: CheckedInput) {
  const imageOriginalKey = imageOriginalUrl ?? values.imageKey;
  return {
    ...values,
    ...(imageOriginalKey === undefined ? {} : { imageOriginalKey }),
    ...(video === undefined ? {} : { videoKey: video, playVideo: video !== null }),
  };
}

const foreignKeyFailed = 'P2003';
const rowIsGone = 'P2025';

/** The outfit may be deleted between looking and writing. */
async function orNotFound<Result>(id: number, writing: Promise<Result>): Promise<Result> {
  try {
    return await writing;
  } catch (error) {
    throw isPrismaError(error, rowIsGone) ? new OutfitNotFoundError(id) : error;
  }
}

function isPrismaError(error: unknown, code: string): boolean {
  return error instanceof Prisma.PrismaClientKnownRequestError && error.code === code;
}
