// What the benchmark uses of packages that are installed on first use only, so that the types of
// the repository can be checked without them.
declare module 'mercurius' {
  import type { FastifyPluginAsync } from 'fastify';
  import type { GraphQLSchema } from 'graphql';

  const mercurius: FastifyPluginAsync<{
    schema: GraphQLSchema;
    context: () => object;
    jit: number;
    graphiql: false;
  }>;
  export default mercurius;
}

declare module 'pg-copy-streams' {
  import type { Writable } from 'node:stream';
  import type { Submittable } from 'pg';

  export function from(statement: string): Writable & Submittable;
}
