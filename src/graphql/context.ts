// The context of resolvers, the same for GraphQL and REST: personal, or shared by all viewers.
import type { FastifyBaseLogger } from 'fastify';
import type { Viewer } from '../admission/viewer.ts';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { Client } from '../database/prisma/client.ts';
import { DependencyTracker, type ReadRows, readRows, type Source } from '../database/read.ts';
import { keepTaskScope, setReads } from '../database/task.ts';
import { createRecordLoaders, type RecordLoaders } from '../outfits/lists/by-id.ts';
import { createUserLists, type UserLists } from '../outfits/lists/list.ts';
import { createLikers, type Likers } from '../outfits/lists/users.ts';
import { isShareable, type Visibility, visibilityFor } from '../outfits/visibility.ts';
import { raiseSequences } from '../outfits/writes/bulk.ts';
import { createViewerLikes, type ViewerLikes } from '../outfits/writes/writes.ts';

export interface Context {
  readonly viewer: Viewer | undefined;
  /** Absent where no request is answered. */
  readonly log?: FastifyBaseLogger | undefined;
  readonly idempotencyKey: string | undefined;
  readonly viewerLikes: ViewerLikes | undefined;
  readonly visibility: Visibility;
  /** Its reads are sent to where `read` sends them, and invalidate the answer as those do. */
  readonly prisma: Client;
  readonly read: ReadRows;
  /** Raises the sequences of ids above ids that were inserted explicitly. */
  readonly raiseSequences: () => Promise<void>;
  /** Whether outfits and likes are written in attached tables of the old service. */
  readonly writesAttached: boolean;
  readonly records: RecordLoaders;
  readonly userLists: UserLists;
  readonly likers: Likers;
  readonly config: ContextConfig;
}

type ContextConfig = Pick<
  Config,
  'browsable' | 'likers' | 'mediaUrl' | 'pageSize' | 'privateOutfits' | 'publicUrl' | 'videoUrl'
>;

/** Whose likes the viewer sees. Public ones do not read the viewer, so that their answer can be shared. */
export function visibleLikes(context: Context): Visibility {
  const isPublic = context.config.likers === 'public';
  return isPublic ? { private: 'all' } : visibilityFor('owner', context.viewer);
}

export type Personal = Pick<Context, 'idempotencyKey' | 'log' | 'viewer'>;

/** Creates the context of each execution: data loaders in it cache what they have read. */
export class ContextFactory {
  /** Whether viewers see what an anonymous caller sees, and no more. */
  readonly sharesWithViewers: boolean;
  readonly #visibleToAll: Visibility;
  readonly #parts: Parts;

  constructor(
    private readonly config: ContextConfig,
    private readonly database: Pick<Database, 'pool' | 'prisma' | 'read'>,
    writesAttached: () => boolean = () => false,
  ) {
    const { pool, prisma } = database;
    this.#visibleToAll = visibilityFor(config.privateOutfits, undefined);
    this.sharesWithViewers = isShareable(visibilityFor(config.privateOutfits, { userId: 0 }));
    this.#parts = { config, prisma, raiseSequences: () => raiseSequences(pool), writesAttached };
  }

  /**
   * @param source where this execution, a task, reads; by default, from the primary
   * @param added what plugins of Yoga have added to the context
   */
  createPersonal(
    personal: Personal,
    source?: Source,
    added: Record<string, unknown> = {},
  ): Context {
    if (source) setReads({ source });
    const read = source ? readRows(source) : this.database.read;
    const visibility = visibilityFor(this.config.privateOutfits, personal.viewer);
    const context = new PersonalContext(this.#parts, inScope(read), visibility, personal);
    return Object.assign(context, added);
  }

  createShared(
    source: Source = this.database.pool,
    added: Record<string, unknown> = {},
  ): SharedContext {
    const tracker = new DependencyTracker(inScope(readRows(source)));
    setReads({ source, tracker });
    return new SharedContext(this.#parts, tracker, this.#visibleToAll, added);
  }
}

/** Statements that follow a read belong to its task, even if the task has ended. */
const inScope =
  (read: ReadRows): ReadRows =>
  (...statement) =>
    keepTaskScope(() => read(...statement));

type Parts = Pick<Context, 'config' | 'prisma' | 'raiseSequences'> & {
  readonly writesAttached: () => boolean;
};

class Loaders {
  readonly config: ContextConfig;
  readonly prisma: Client;
  readonly raiseSequences: () => Promise<void>;
  readonly #writesAttached: () => boolean;
  #records: RecordLoaders | undefined;
  #userLists: UserLists | undefined;
  #likers: Likers | undefined;

  constructor(
    { config, prisma, raiseSequences, writesAttached }: Parts,
    readonly read: ReadRows,
    readonly visibility: Visibility,
  ) {
    this.config = config;
    this.prisma = prisma;
    this.raiseSequences = raiseSequences;
    this.#writesAttached = writesAttached;
  }

  get writesAttached(): boolean {
    return this.#writesAttached();
  }

  get records(): RecordLoaders {
    this.#records ??= createRecordLoaders(this.read, this.visibility);
    return this.#records;
  }

  get userLists(): UserLists {
    this.#userLists ??= createUserLists(this.read, this.visibility);
    return this.#userLists;
  }

  get likers(): Likers {
    this.#likers ??= createLikers(this.read, this.visibility);
    return this.#likers;
  }
}

class PersonalContext extends Loaders implements Context {
  readonly viewer: Viewer | undefined;
  readonly log: FastifyBaseLogger | undefined;
  readonly idempotencyKey: string | undefined;
  #viewerLikes: ViewerLikes | undefined;

  constructor(parts: Parts, read: ReadRows, visibility: Visibility, personal: Personal) {
    super(parts, read, visibility);
    this.viewer = personal.viewer;
    this.log = personal.log;
    this.idempotencyKey = personal.idempotencyKey;
  }

  get viewerLikes(): ViewerLikes | undefined {
    if (this.viewer) this.#viewerLikes ??= createViewerLikes(this.prisma, this.viewer.userId);
    return this.#viewerLikes;
  }
}

/** The context of an answer that all viewers share: records whether a resolver used something personal. */
export class SharedContext extends Loaders implements Context {
  declare readonly viewer: undefined;
  declare readonly idempotencyKey: undefined;
  declare readonly viewerLikes: undefined;
  /** Whether a resolver used the viewer, their likes or an idempotency key: then the answer is not shareable. */
  isPersonal = false;

  constructor(
    parts: Parts,
    readonly tracker: DependencyTracker,
    visibility: Visibility,
    added: Record<string, unknown>,
  ) {
    super(parts, tracker.read, visibility);
    Object.defineProperties(this, tracked);
    // What a plugin adds may be of one viewer.
    for (const [name, value] of Object.entries(added)) {
      const get = () => {
        this.isPersonal = true;
        return value;
      };
      Object.defineProperty(this, name, { get, enumerable: true });
    }
  }
}

function markPersonal(this: SharedContext): undefined {
  this.isPersonal = true;
}

/** Own and enumerable, so that copying the context counts as use. */
const tracked: PropertyDescriptorMap = {
  viewer: { get: markPersonal, enumerable: true },
  idempotencyKey: { get: markPersonal, enumerable: true },
  viewerLikes: { get: markPersonal, enumerable: true },
};
