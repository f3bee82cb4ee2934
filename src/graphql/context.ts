import type { Config } from '../config.ts';
import type { ReadRows } from '../database/read.ts';
import type { PrismaClient } from '../generated/prisma/client.ts';
import type { UserPageLoader } from '../outfits/user-pages.ts';

/** What every resolver gets, the same for GraphQL and REST. */
export interface Context {
  readonly prisma: PrismaClient;
  /** Reads lists. */
  readonly read: ReadRows;
  /** Reads users' outfits for all users of a request at once. */
  readonly userPages: UserPageLoader;
  readonly config: Pick<Config, 'mediaUrl' | 'pageSize' | 'videoUrl'>;
}
