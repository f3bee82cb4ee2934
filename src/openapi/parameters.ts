// The parameters of a legacy path: the variables of its stored document, by their types.
import {
  type DocumentNode,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getOperationAST,
  isEnumType,
  isListType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  valueFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { RestError } from '../rest/errors.ts';
import type { Route } from '../rest/routes.ts';
import { createVariableReader, maxPage } from '../rest/variables.ts';
import {
  describeChoices,
  describedBy,
  type JsonSchema,
  type NamedSchemas,
  schemaOfInput,
} from './json-schema.ts';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: JsonSchema;
  readonly [key: string]: unknown;
}

/** The parameters of GET and HEAD, in the order of the document. */
export function describeParameters(
  schema: GraphQLSchema,
  route: Route,
  named: NamedSchemas,
): Parameter[] {
  const operation = readOperationOf(route);
  const descriptions = describeVariables(schema, operation.document);
  const inPath = new Set([...route.path.matchAll(/:(\w+)/g)].map(([, name]) => name));
  return (operation.node.variableDefinitions ?? []).flatMap(
    ({ variable, type: node, defaultValue }): Parameter[] => {
      const name = variable.name.value;
      const description = descriptions.get(name);
      if (route.list && name === 'page') return [describePage(description)];
      if (route.list && name === 'last') return [];
      const type = typeFromAST(schema, node as never) as GraphQLInputType;
      const leaf = getNamedType(type);
      const item = schemaOfInput(leaf, named);
      const whole = isListType(getNullableType(type)) ? { type: 'array', items: item } : item;
      const isRequired = isNonNullType(type) && !defaultValue;
      return [
        {
          name,
          in: inPath.has(name) ? 'path' : 'query',
          ...(isRequired || inPath.has(name) ? { required: true } : {}),
          ...describedBy(description, isEnumType(leaf) ? describeChoices(leaf) : undefined),
          schema: {
            ...whole,
            ...findDefault(leaf, defaultValue && valueFromAST(defaultValue, type)),
          },
        },
      ];
    },
  );
}

/** What is taken when nothing is given: as the document says, or the enum. */
function findDefault(type: GraphQLNamedType, ofDocument: unknown): JsonSchema {
  const choices = isEnumType(type) ? type.getValues() : [];
  const found = choices.find(({ extensions }) => extensions['isDefault'])?.value;
  const value = ofDocument ?? found;
  return value === undefined ? {} : { default: value };
}

/** It has rules of its own: `last` is another variable. */
function describePage(description: string | undefined): Parameter {
  return {
    name: 'page',
    in: 'query',
    ...describedBy(description, '`last` is the last page, whichever that is.'),
    schema: {
      anyOf: [
        { type: 'integer', minimum: 1, maximum: maxPage },
        { type: 'string', const: 'last' },
      ],
    },
  };
}

/**
 * What a value is answered with that cannot be read, by the parameter: as the reader says it.
 * @param value that is wrong wherever any can be
 */
export function findParameterErrors(
  schema: GraphQLSchema,
  route: Route,
  parameters: readonly Parameter[],
  value = 'nope',
): Record<string, RestError> {
  const { node } = readOperationOf(route);
  const names = node.variableDefinitions?.map(({ variable }) => variable.name.value) ?? [];
  const errors: Record<string, RestError> = {};
  for (const { name, in: place } of parameters) {
    if (place !== 'query' || (route.list && name === 'page')) continue;
    const read = createVariableReader(
      schema,
      node,
      names.filter((other) => other !== name),
    );
    try {
      read([[name, value]]);
    } catch (error) {
      if (error instanceof RestError) errors[name] = error;
    }
  }
  return errors;
}

function readOperationOf({ path, list, record }: Route): {
  readonly document: DocumentNode;
  readonly node: OperationDefinitionNode;
} {
  const document = list ?? record;
  const node = document && getOperationAST(document);
  if (!document || !node) throw new Error(`The path ${path} has no document.`);
  return { document, node };
}

/** By the variable, what the schema says of the argument that it goes to. */
function describeVariables(
  schema: GraphQLSchema,
  document: DocumentNode,
): ReadonlyMap<string, string> {
  const descriptions = new Map<string, string>();
  const typeInfo = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(typeInfo, {
      Argument({ value }) {
        const description = typeInfo.getArgument()?.description;
        if (value.kind !== Kind.VARIABLE || !description) return;
        descriptions.set(value.name.value, description);
      },
    }),
  );
  return descriptions;
}
