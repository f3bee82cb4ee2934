import type { Viewer } from '../admission/viewer.ts';
import type { Config } from '../config.ts';
import type { ReadRows } from '../database/read.ts';
import type { PrismaClient } from '../generated/prisma/client.ts';
import type { RecordLoaders } from '../outfits/by-id.ts';
import type { UserPageLoader } from '../outfits/user-pages.ts';
import type { Visibility } from '../outfits/visibility.ts';

/** What every resolver gets, the same for GraphQL and REST. */
export interface Context {
  /** Who is asking; undefined: nobody in particular. */
  readonly viewer: Viewer | undefined;
  readonly visibility: Visibility;
  /** Whether what the viewer sees may be given to others: by the cache, and by those between. */
  readonly isShareable: boolean;
  readonly prisma: PrismaClient;
  /** The key that the client chose for this request, so that it can be sent again. */
  readonly idempotencyKey: string | undefined;
  /** Runs a prepared statement: reads lists, and writes. */
  readonly read: ReadRows;
  /** Makes room for new ids when those of others are in the way. */
  readonly raiseSequences: () => Promise<void>;
  /** Reads single records, all that a step of a request needs at once. */
  readonly records: RecordLoaders;
  /** Reads users' outfits for all users of a request at once. */
  readonly userPages: UserPageLoader;
  readonly config: Pick<Config, 'mediaUrl' | 'pageSize' | 'videoUrl'>;
}
