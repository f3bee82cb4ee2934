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
  Kind,
  TypeInfo,
  typeFromAST,
  type ValueNode,
  valueFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { knownParametersOf } from '../documents.ts';
import type { Route } from '../routes.ts';
import { maxPage } from '../variables.ts';
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
  const descriptions = new Map<string, string | null | undefined>();
  const typeInfo = new TypeInfo(schema);
  const Argument = ({ value }: { readonly value: ValueNode }) => {
    if (value.kind !== Kind.VARIABLE) return;
    descriptions.set(value.name.value, typeInfo.getArgument()?.description);
  };
  visit(document, visitWithTypeInfo(typeInfo, { Argument }));
  const inQuery = knownParametersOf(route);
  const definitions = getOperationAST(document)?.variableDefinitions ?? [];
  return definitions.flatMap(({ variable, type: node, defaultValue }): JsonSchema[] => {
    const name = variable.name.value;
    if (route.list && name === 'last') return [];
    if (route.list && name === 'page') {
      const text = describedBy(
        descriptions.get(name),
        '`last` is the last page, whichever that is.',
      );
      const number = { type: 'integer', minimum: 1, maximum: maxPage };
      const schema = { anyOf: [number, { type: 'string', const: 'last' }] };
      return [{ name, in: 'query', ...text, schema }];
    }
    const type = typeFromAST(schema, node as never) as GraphQLInputType;
    const leaf = getNamedType(type);
    const { description: meaning, ...item } = schemas.ofInput(leaf, descriptions.get(name));
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
          ...(value === undefined ? {} : { default: value }),
        },
      },
    ];
  });
}
