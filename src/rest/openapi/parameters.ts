// Parameters in the OpenAPI document: the variables of the stored document, by their types.
import {
  type DocumentNode,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getOperationAST,
  isEnumType,
  isListType,
  isNonNullType,
  typeFromAST,
  valueFromAST,
} from 'graphql';
import { findInputs } from '../describe.ts';
import { knownParametersOf } from '../documents.ts';
import type { Route } from '../routes.ts';
import { maxPage, rangeOf } from '../variables.ts';
import { describedBy, type JsonSchema, type Schemas } from './schemas.ts';

export function readDocumentOf({ path, list, record }: Route): DocumentNode {
  const document = list ?? record;
  if (!document) throw new Error(`The path ${path} has neither a list nor a record.`);
  return document;
}

export function describeParameters(
  schema: GraphQLSchema,
  route: Route,
  schemas: Schemas,
): JsonSchema[] {
  const document = readDocumentOf(route);
  const inputs = new Map(findInputs(schema, document).map((found) => [found.name, found.input]));
  const inQuery = knownParametersOf(route);
  const definitions = getOperationAST(document)?.variableDefinitions ?? [];
  return definitions.flatMap(({ variable, type: node, defaultValue }): JsonSchema[] => {
    const name = variable.name.value;
    if (route.list && name === 'last') return [];
    if (route.list && name === 'page') {
      const text = describedBy(inputs.get(name)?.description, '`last` is the last page.');
      const number = { type: 'integer', minimum: 1, maximum: maxPage };
      const schema = { anyOf: [number, { type: 'string', const: 'last' }] };
      return [{ name, in: 'query', ...text, schema }];
    }
    const type = typeFromAST(schema, node as never) as GraphQLInputType;
    const leaf = getNamedType(type);
    const { description: meaning, ...item } = schemas.ofInput(leaf, inputs.get(name)?.description);
    const [minimum, maximum] = rangeOf(inputs.get(name)) ?? [];
    const choices = isEnumType(leaf) ? leaf.getValues() : [];
    const value =
      (defaultValue && valueFromAST(defaultValue, type)) ??
      choices.find(({ extensions }) => extensions['isDefault'])?.value;
    return [
      {
        name,
        in: inQuery.has(name) ? 'query' : 'path',
        required: !inQuery.has(name) || (isNonNullType(type) && !defaultValue),
        ...describedBy(meaning),
        schema: {
          ...(isListType(getNullableType(type)) ? { type: 'array', items: item } : item),
          ...(minimum === undefined ? {} : { minimum, maximum }),
          ...(value === undefined ? {} : { default: value }),
        },
      },
    ];
  });
}
