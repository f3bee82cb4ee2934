// The OpenAPI document of the legacy paths: from their table, the stored documents and the schema.
import type { GraphQLSchema } from 'graphql';
import { canIdentify, type IdentityConfig } from '../admission/viewer.ts';
import type { Config } from '../config.ts';
import { version } from '../package.ts';
import type { DeprecationConfig } from '../rest/deprecation.ts';
import type { Route } from '../rest/routes.ts';
import { findHeaders } from './headers.ts';
import { type JsonSchema, NamedHeaders, NamedSchemas } from './json-schema.ts';
import { describePath } from './operations.ts';
import { describeRedirect, redirects } from './redirects.ts';
import type { Samples } from './samples.ts';

export interface DocumentOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  readonly config: DeprecationConfig &
    IdentityConfig &
    Pick<
      Config,
      | 'browsable'
      | 'compression'
      | 'corsOrigins'
      | 'legacyMode'
      | 'rateLimit'
      | 'unknownParameters'
      | 'writes'
    >;
}

/** @param base scheme and host of the links, where the paths are */
export function createDocument(options: DocumentOptions, base: string, samples: Samples) {
  const { config, routes } = options;
  const named = { schemas: new NamedSchemas(), headers: new NamedHeaders() };
  const described = routes.map((route) => {
    const headers = findHeaders(route, config);
    const context = { ...options, route, named, samples, headers };
    const key = route.path.replace(/:(\w+)/g, '{$1}');
    return { key, path: describePath(context), redirect: describeRedirect(context) };
  });
  const paths = [
    ...described.map(({ key, path }) => [key, path] as const),
    ...described.map(({ key, redirect }) => [key.slice(0, -1), redirect] as const),
  ];
  return {
    openapi: '3.1.0',
    info: {
      title: 'REST API of the outfit gateway',
      version,
      description:
        'The REST paths. Everything that they give, and more, is in the GraphQL schema at `/graphql` too.',
    },
    servers: [{ url: base }],
    // Paths may share a name: the first of them describes it.
    tags: [
      ...[...new Map(routes.toReversed().map((route) => [route.name, route])).values()]
        .toReversed()
        .map(({ name, description }) => ({ name, description })),
      redirects,
    ],
    paths: Object.fromEntries(nameDistinctly(paths)),
    components: {
      schemas: named.schemas.toObject(),
      headers: named.headers.toObject(),
      ...(canIdentify(config)
        ? {
            securitySchemes: {
              bearer: {
                type: 'http',
                scheme: 'bearer',
                bearerFormat: 'JWT',
                description: 'Needed to write only. Its `sub` is the id of a user.',
              },
            },
          }
        : {}),
    },
  };
}

/** Two paths may ask the same document, but an operation is known by its name: the second gets a number. */
function nameDistinctly(paths: readonly (readonly [string, JsonSchema])[]): [string, JsonSchema][] {
  const taken = new Set<string>();
  const distinct = (name: string) => {
    let free = name;
    for (let number = 2; taken.has(free); number += 1) free = `${name}${number}`;
    taken.add(free);
    return free;
  };
  return paths.map(([path, item]) => [
    path,
    Object.fromEntries(
      Object.entries(item).map(([key, operation]) =>
        isOperation(operation)
          ? [key, { ...operation, operationId: distinct(operation.operationId) }]
          : [key, operation],
      ),
    ),
  ]);
}

function isOperation(value: unknown): value is { readonly operationId: string } {
  return typeof value === 'object' && value !== null && 'operationId' in value;
}
