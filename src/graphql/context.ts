// The context of resolvers, the same for GraphQL and REST: personal, or shared by all viewers.
import type { FastifyBaseLogger } from 'fastify';
import type { Attached } from '../admission/admission.ts';
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

type ContextConfig = Pick<
  Config,
  'browsable' | 'likers' | 'mediaUrl' | 'pageSize' | 'privateOutfits' | 'publicUrl' | 'videoUrl'
>;

/** Whose likes the viewer sees. Public ones do not read the viewer, so that their answer can be shared. */
export function visibleLikes(context: Context): Visibility {
  const isPublic = context.config.likers === 'public';
  return isPublic ? { private: 'all' } : visibilityFor('owner', context.viewer);
}

export interface Personal {
  readonly viewer: Viewer | undefined;
  /** Absent where no request is answered. */
  readonly log?: FastifyBaseLogger | undefined;
  readonly idempotencyKey: string | undefined;
}

/** Creates the context of each execution: data loaders in it cache what they have read. */
export class ContextFactory {
  /** Whether viewers see what an anonymous caller sees, and no more. */
  readonly sharesWithViewers: boolean;
  readonly #visibleToAll: Visibility;
  readonly #parts: Parts;

  constructor(
    private readonly config: ContextConfig,
    private readonly database: Pick<Database, 'pool' | 'prisma' | 'read'>,
    attachment?: Attached,
  ) {
    const { pool, prisma } = database;
    this.#visibleToAll = visibilityFor(config.privateOutfits, undefined);
    this.sharesWithViewers = isShareable(visibilityFor(config.privateOutfits, { userId: 0 }));
    const raise = () => raiseSequences(pool, ['outfits']);
    this.#parts = { config, prisma, raiseSequences: raise, attachment };
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
    return Object.assign(new Context(this.#parts, inScope(read), visibility), personal, added);
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

interface Parts {
  readonly config: ContextConfig;
  readonly prisma: Client;
  readonly raiseSequences: () => Promise<void>;
  readonly attachment: Attached | undefined;
}

export class Context implements Personal {
  declare readonly viewer: Viewer | undefined;
  declare readonly log?: FastifyBaseLogger | undefined;
  declare readonly idempotencyKey: string | undefined;
  readonly config: ContextConfig;
  /** Its reads are sent to where `read` sends them, and invalidate the answer as those do. */
  readonly prisma: Client;
  /** Raises the sequences of ids above ids that were inserted explicitly. */
  readonly raiseSequences: () => Promise<void>;
  readonly #attachment: Attached | undefined;
  #records: RecordLoaders | undefined;
  #userLists: UserLists | undefined;
  #likers: Likers | undefined;
  #viewerLikes: ViewerLikes | undefined;

  constructor(
    { config, prisma, raiseSequences, attachment }: Parts,
    readonly read: ReadRows,
    readonly visibility: Visibility,
  ) {
    this.config = config;
    this.prisma = prisma;
    this.raiseSequences = raiseSequences;
    this.#attachment = attachment;
  }

  /** Whether outfits and likes are written in attached tables of the old service. */
  get writesAttached(): boolean {
    return this.#attachment?.writer === 'both';
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

  get viewerLikes(): ViewerLikes | undefined {
    if (this.viewer) this.#viewerLikes ??= createViewerLikes(this.prisma, this.viewer.userId);
    return this.#viewerLikes;
  }
}

/** Own and enumerable, so that copying the context counts as use. What a plugin adds may be of one viewer. */
const personalProperty = (value?: unknown) => ({
  get(this: SharedContext) {
    this.isPersonal = true;
    return value;
  },
  enumerable: true,
});

const personalProperties = {
  viewer: personalProperty(),
  idempotencyKey: personalProperty(),
  viewerLikes: personalProperty(),
};

/** The context of an answer that all viewers share: records whether a resolver used something personal. */
export class SharedContext extends Context {
  /** Whether a resolver used the viewer, their likes or an idempotency key: then the answer is not shareable. */
  isPersonal = false;

  constructor(
    parts: Parts,
    readonly tracker: DependencyTracker,
    visibility: Visibility,
    added: Record<string, unknown>,
  ) {
    super(parts, tracker.read, visibility);
    Object.defineProperties(this, personalProperties);
    for (const [name, value] of Object.entries(added)) {
      Object.defineProperty(this, name, personalProperty(value));
    }
  }
}
