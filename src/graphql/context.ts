import type { Config } from '../config.ts';
import type { PrismaClient } from '../generated/prisma/client.ts';

/** What every resolver gets, the same for GraphQL and REST. */
export interface Context {
  readonly prisma: PrismaClient;
  readonly config: Pick<Config, 'mediaUrl' | 'pageSize' | 'videoUrl'>;
}
