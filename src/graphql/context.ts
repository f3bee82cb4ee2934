// What every resolver gets, the same for GraphQL and REST.
import type { Viewer } from '../admission/viewer.ts';
import type { Config } from '../config.ts';
import type { MadeOf } from '../database/changes.ts';
import type { Database } from '../database/database.ts';
import type { ReadRows } from '../database/read.ts';
import { recordReads } from '../database/read.ts';
import { holdScope } from '../database/task.ts';
import type { PrismaClient } from '../generated/prisma/client.ts';
import { raiseSequences } from '../outfits/bulk.ts';
import { createRecordLoaders, type RecordLoaders } from '../outfits/by-id.ts';
import { createViewerLikes, type ViewerLikes } from '../outfits/likes.ts';
import { createUserLists, type UserLists } from '../outfits/list.ts';
import { isShareable, type Visibility, visibilityFor } from '../outfits/visibility.ts';

export interface Context {
  /** Who is asking; undefined: nobody in particular. */
  readonly viewer: Viewer | undefined;
  /** The key that the client chose for this request, so that it can be sent again. */
  readonly idempotencyKey: string | undefined;
  /** What the viewer likes; undefined without a viewer. */
  readonly viewerLikes: ViewerLikes | undefined;
  readonly visibility: Visibility;
  readonly prisma: PrismaClient;
  /** Runs a statement of our own: reads lists, and writes. */
  readonly read: ReadRows;
  /** Makes room for new ids when those of others are in the way. */
  readonly raiseSequences: () => Promise<void>;
  /** Reads single records, all that a step of a request needs at once. */
  readonly records: RecordLoaders;
  /** Reads users' outfits as lists, for all users of a step of a request at once. */
  readonly userLists: UserLists;
  readonly config: ContextConfig;
}

type ContextConfig = Pick<Config, 'mediaUrl' | 'pageSize' | 'privateOutfits' | 'videoUrl'>;

/** What of a context is one request's own. */
export type Personal = Pick<Context, 'idempotencyKey' | 'viewer'>;

/** A context of an answer that is given to others too. */
export interface SharedContext {
  readonly context: Context;
  /** Whether a resolver has asked for something personal: then the answer must not be shared. */
  isPersonal(): boolean;
  /** What was read with it; undefined: something that does not say what it is of. */
  madeOf(): MadeOf | undefined;
}

export interface ContextFactory {
  /** @param read how this execution reads; unset, as it writes */
  forOne(personal: Personal, read?: ReadRows): Context;
  /** Undefined when this viewer sees what others do not. */
  shared(viewer: Viewer | undefined): ((read?: ReadRows) => SharedContext) | undefined;
}

/** Makes the context of each execution: loaders in it remember what they have read. */
export function createContextFactory(
  config: ContextConfig,
  { pool, prisma, read: readPrimary }: Pick<Database, 'pool' | 'prisma' | 'read'>,
): ContextFactory {
  const held =
    (read: ReadRows): ReadRows =>
    (...statement) =>
      holdScope(() => read(...statement));
  const impersonal = (visibility: Visibility, read: ReadRows) => ({
    visibility,
    prisma,
    read,
    raiseSequences: () => raiseSequences(pool),
    records: createRecordLoaders(read, visibility),
    userLists: createUserLists(read, visibility),
    config,
  });

  /** Has nothing personal to give, and notes that it was asked: a resolver cannot forget to say so. */
  const createShared = (visibility: Visibility, read: ReadRows): SharedContext => {
    let isPersonal = false;
    const recorded = recordReads(held(read));
    const note = () => {
      isPersonal = true;
      return undefined;
    };
    const context = Object.defineProperties(impersonal(visibility, recorded.read), {
      // Enumerable, so that a copy of the context has asked too.
      viewer: { get: note, enumerable: true },
      idempotencyKey: { get: note, enumerable: true },
      viewerLikes: { get: note, enumerable: true },
      // Nothing tells what is read with it.
      prisma: {
        get: () => {
          recorded.noteAnything();
          return prisma;
        },
        enumerable: true,
      },
    }) as Context;
    return { context, isPersonal: () => isPersonal, madeOf: recorded.madeOf };
  };

  return {
    forOne(personal, given = readPrimary) {
      const read = held(given);
      return {
        ...personal,
        viewerLikes: personal.viewer && createViewerLikes(read, personal.viewer.userId),
        ...impersonal(visibilityFor(config.privateOutfits, personal.viewer), read),
      };
    },
    shared(viewer) {
      const visibility = visibilityFor(config.privateOutfits, viewer);
      if (!isShareable(visibility)) return undefined;
      return (read = readPrimary) => createShared(visibility, read);
    },
  };
}
