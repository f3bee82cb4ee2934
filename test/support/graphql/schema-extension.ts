// The schema with fields that only a test has.
import { extendSchema, type GraphQLFieldResolver, type GraphQLSchema, parse } from 'graphql';
import type { Context } from '../../../src/graphql/context.ts';
import { schema } from '../../../src/graphql/schema.ts';

export type Resolver = GraphQLFieldResolver<unknown, Context>;

/**
 * @param text extensions in the schema language
 * @param resolvers by type and field, such as `Query.hello`
 */
export function extend(text: string, resolvers: Readonly<Record<string, Resolver>>): GraphQLSchema {
  const extended = extendSchema(schema, parse(text));
  for (const [name, resolve] of Object.entries(resolvers)) {
    const [typeName = '', fieldName = ''] = name.split('.');
    const type = extended.getType(typeName);
    const field = type && 'getFields' in type ? type.getFields()[fieldName] : undefined;
    if (!field) throw new Error(`There is no ${name}.`);
    Object.assign(field, { resolve });
  }
  return extended;
}
