// Subscription: the fields of Query that can be followed, and a subscription written as a query.
import {
  type DocumentNode,
  GraphQLObjectType,
  GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  visit,
} from 'graphql';

/** The fields of `Query` that can be followed. */
const liveFields = ['outfits', 'outfitConnection', 'outfit'];

/** The same schema with live fields: those of `Query` themselves, so that they cannot differ. */
export function addSubscription(schema: GraphQLSchema): GraphQLSchema {
  const all = schema.getQueryType()?.toConfig().fields ?? {};
  const fields = Object.entries(all).filter(([name]) => liveFields.includes(name));
  const subscription = new GraphQLObjectType({
    name: 'Subscription',
    description:
      'Answers that stay true: each comes at once, and again whenever it has changed, whoever wrote. They are sent as server-sent events, to requests with `Accept: text/event-stream`.',
    fields: Object.fromEntries(fields),
  });
  return new GraphQLSchema({ ...schema.toConfig(), subscription });
}

/**
 * A subscription as a query, with which it is answered each time: an answer is state, not an event.
 * @param document valid, as is the operation in it
 */
export function asQuery(
  { definitions }: DocumentNode,
  operation: OperationDefinitionNode,
): { document: DocumentNode; node: OperationDefinitionNode } {
  const node = { ...operation, operation: OperationTypeNode.QUERY };
  const kept = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  // Or else fragments on the type `Subscription` would match nothing.
  const document = visit<DocumentNode>(
    { kind: Kind.DOCUMENT, definitions: [node, ...kept] },
    {
      NamedType: (type) =>
        type.name.value === 'Subscription'
          ? { ...type, name: { ...type.name, value: 'Query' } }
          : undefined,
    },
  );
  return { document, node: getOperationAST(document) ?? node };
}
