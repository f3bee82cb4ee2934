// Mercurius with its JIT on the schema, the resolvers and the database client of the gateway.
import Fastify from 'fastify';
import mercurius from 'mercurius';
import {
  importBulk,
  importById,
  importConfig,
  importDatabase,
  importLikers,
  importList,
  importSchema,
} from '../source.js';

const { readConfig } = await importConfig();
const { openDatabase } = await importDatabase();
const { schema } = await importSchema();
const { createRecordLoaders } = await importById();
const { raiseSequences } = await importBulk();
const { createUserLists } = await importList();
const { createLikers } = await importLikers();

const config = readConfig(process.env);
const { pool, prisma, read } = await openDatabase(config);
const viewer = undefined;
const idempotencyKey = undefined;
const viewerLikes = undefined;
const visibility = /** @type {const} */ ({ private: 'all' });
/** @type {() => Partial<import('../../src/graphql/context.ts').Context>} */
const context = () => ({
  viewer,
  idempotencyKey,
  viewerLikes,
  visibility,
  forgetPages: () => {},
  config,
  prisma,
  read,
  raiseSequences: () => raiseSequences(pool),
  writesAttached: false,
  records: createRecordLoaders(read, visibility),
  userLists: createUserLists(read, visibility),
  likers: createLikers(read, visibility),
});

const app = Fastify({ logger: false });
await app.register(mercurius, {
  schema,
  context,
  jit: 1,
  graphiql: false,
});
await app.listen({ host: config.host, port: config.port });
