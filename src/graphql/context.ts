// What every resolver gets, the same for GraphQL and REST.
import type { Viewer } from '../admission/viewer.ts';
import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';
import { DependencyTracker, type ReadRows } from '../database/read.ts';
import { keepTaskScope } from '../database/task.ts';
import type { PrismaClient } from '../generated/prisma/client.ts';
import { createRecordLoaders, type RecordLoaders } from '../outfits/lists/by-id.ts';
import { createUserLists, type UserLists } from '../outfits/lists/list.ts';
import { isShareable, type Visibility, visibilityFor } from '../outfits/visibility.ts';
import { raiseSequences } from '../outfits/writes/bulk.ts';
import { createViewerLikes, type ViewerLikes } from '../outfits/writes/writes.ts';

export interface Context {
  readonly viewer: Viewer | undefined;
  readonly idempotencyKey: string | undefined;
  readonly viewerLikes: ViewerLikes | undefined;
  readonly visibility: Visibility;
  readonly prisma: PrismaClient;
  readonly read: ReadRows;
  /** Makes room for new ids when those of others are in the way. */
  readonly raiseSequences: () => Promise<void>;
  readonly records: RecordLoaders;
  readonly userLists: UserLists;
  readonly config: ContextConfig;
}

type ContextConfig = Pick<Config, 'mediaUrl' | 'pageSize' | 'privateOutfits' | 'videoUrl'>;

export type Personal = Pick<Context, 'idempotencyKey' | 'viewer'>;

export type ContextFactory = ReturnType<typeof createContextFactory>;

/** Makes the context of each execution: loaders in it remember what they have read. */
export function createContextFactory(
  config: ContextConfig,
  { pool, prisma, read: readPrimary }: Pick<Database, 'pool' | 'prisma' | 'read'>,
) {
  const { privateOutfits } = config;
  const visibleToAll = visibilityFor(privateOutfits, undefined);
  const parts = { config, prisma, raiseSequences: () => raiseSequences(pool) };
  const held =
    (read: ReadRows): ReadRows =>
    (...statement) =>
      keepTaskScope(() => read(...statement));
  return {
    /** @param read how this execution reads; unset, as it writes */
    forOne: (personal: Personal, read: ReadRows = readPrimary): Context =>
      new OwnContext(parts, held(read), visibilityFor(privateOutfits, personal.viewer), personal),
    forAll: (read: ReadRows = readPrimary) =>
      new SharedContext(parts, new DependencyTracker(held(read)), visibleToAll),
    /** Whether viewers see what everyone sees, and no more. */
    sharesWithViewers: isShareable(visibilityFor(privateOutfits, { userId: 0 })),
  };
}

type Parts = Pick<Context, 'config' | 'prisma' | 'raiseSequences'>;

class Loaders {
  readonly config: ContextConfig;
  readonly raiseSequences: () => Promise<void>;
  #records: RecordLoaders | undefined;
  #userLists: UserLists | undefined;

  constructor(
    { config, raiseSequences }: Parts,
    readonly read: ReadRows,
    readonly visibility: Visibility,
  ) {
    this.config = config;
    this.raiseSequences = raiseSequences;
  }

  get records(): RecordLoaders {
    this.#records ??= createRecordLoaders(this.read, this.visibility);
    return this.#records;
  }

  get userLists(): UserLists {
    this.#userLists ??= createUserLists(this.read, this.visibility);
    return this.#userLists;
  }
}

class OwnContext extends Loaders implements Context {
  readonly viewer: Viewer | undefined;
  readonly idempotencyKey: string | undefined;
  readonly prisma: PrismaClient;
  #viewerLikes: ViewerLikes | undefined;

  constructor(parts: Parts, read: ReadRows, visibility: Visibility, personal: Personal) {
    super(parts, read, visibility);
    this.viewer = personal.viewer;
    this.idempotencyKey = personal.idempotencyKey;
    this.prisma = parts.prisma;
  }

  get viewerLikes(): ViewerLikes | undefined {
    if (this.viewer) this.#viewerLikes ??= createViewerLikes(this.read, this.viewer.userId);
    return this.#viewerLikes;
  }
}

/** The context of an answer that others get too. It notes that something personal was asked for. */
export class SharedContext extends Loaders implements Context {
  declare readonly viewer: undefined;
  declare readonly idempotencyKey: undefined;
  declare readonly viewerLikes: undefined;
  declare readonly prisma: PrismaClient;
  readonly client: PrismaClient;
  /** Whether a resolver has asked for something personal: then the answer must not be shared. */
  isPersonal = false;

  constructor(
    parts: Parts,
    readonly tracker: DependencyTracker,
    visibility: Visibility,
  ) {
    super(parts, tracker.read, visibility);
    this.client = parts.prisma;
    Object.defineProperties(this, noted);
  }
}

function notePersonal(this: SharedContext): undefined {
  this.isPersonal = true;
}

/** Nothing tells what is read with it. */
function notePrisma(this: SharedContext): PrismaClient {
  this.tracker.markUnknown();
  return this.client;
}

/** Own and enumerable, so that a copy of the context has asked too. */
const noted: PropertyDescriptorMap = {
  viewer: { get: notePersonal, enumerable: true },
  idempotencyKey: { get: notePersonal, enumerable: true },
  viewerLikes: { get: notePersonal, enumerable: true },
  prisma: { get: notePrisma, enumerable: true },
};
