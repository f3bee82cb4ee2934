// The executable schema: all types, and the root type Subscription.
import './types/outfit-connection.ts';
import './types/outfit-mutations.ts';
import './types/outfit-page.ts';
import './types/user-connection.ts';
import './types/viewer.ts';
import {
  GraphQLDeprecatedDirective,
  GraphQLDirective,
  GraphQLObjectType,
  GraphQLSchema,
  lexicographicSortSchema,
  printSchema,
  specifiedDirectives,
} from 'graphql';
import { builder } from './builder.ts';

/** Fields of `Query` that are fields of `Subscription` too. */
const liveFields = ['outfits', 'outfitConnection', 'outfit'];

/** Without the location that graphql-js has ahead of the specification: clients refuse a schema that names it. */
const deprecated = new GraphQLDirective({
  ...GraphQLDeprecatedDirective.toConfig(),
  locations: GraphQLDeprecatedDirective.locations.filter((name) => name !== 'DIRECTIVE_DEFINITION'),
});
const directives = specifiedDirectives.map((one) =>
  one === GraphQLDeprecatedDirective ? deprecated : one,
);

export const schema = addSubscription(builder.toSchema());

/** Adds Subscription: with the field definitions of `Query`, so that they cannot differ. */
function addSubscription(base: GraphQLSchema): GraphQLSchema {
  const all = base.getQueryType()?.toConfig().fields ?? {};
  const fields = Object.entries(all).filter(([name]) => liveFields.includes(name));
  const subscription = new GraphQLObjectType({
    name: 'Subscription',
    description:
      'Live queries: the current result at once, and a new one after each committed change to it. They are sent as server-sent events, to requests with `Accept: text/event-stream`, and over WebSockets, with the subprotocol `graphql-transport-ws`.',
    fields: Object.fromEntries(fields),
  });
  return new GraphQLSchema({ ...base.toConfig(), subscription, directives });
}

// The description of the schema, for which Pothos has no option: the first page of the documentation in GraphiQL.
schema.description = `Outfits and the users who publish them: the same data as the REST listing \`/api/outfits/\`.

**Start here:** \`outfits\` gives numbered pages with their count, \`outfitConnection\` a range for scrolling,
\`outfit\`, \`user\` and \`node\` a single one, \`viewer\` who is asking. \`filter\` narrows any list, and searches it.
A subscription keeps an answer up to date.

**Signing in:** reading needs no token. Mutations need a bearer token in the header
\`Authorization: Bearer ...\`; its user is the owner of what is written.

**Limits:** a range has at most 100 items, and one document a limited number of objects, aliases and levels:
an error says which limit was passed. Errors that a program can act on have a code in \`extensions.code\`.`;

/** The text of schema.graphql. Single-line descriptions stay on one line: graphql-js writes longer ones on three. */
export function printSdl(schema: GraphQLSchema): string {
  const text = printSchema(lexicographicSortSchema(schema));
  return text.replace(/^( *)"""\n\1(.*[^\\"\n])\n\1"""$/gm, '$1"""$2"""');
}
