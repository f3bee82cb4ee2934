// JSON Schemas of what stored documents select: their aliases are the names on the wire.
import {
  BREAK,
  type DocumentNode,
  type FieldNode,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import {
  describedBy,
  type JsonSchema,
  type NamedSchemas,
  nullable,
  schemaOfScalar,
} from './json-schema.ts';

export interface SelectionOptions {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly named: NamedSchemas;
}

/** A field that a document selects. */
export interface SelectedField {
  readonly type: GraphQLOutputType;
  readonly selectionSet: SelectionSetNode | undefined;
  readonly description: string | undefined;
}

/** The first field that has this name in an answer. */
export function findField(
  name: string,
  { schema, document }: Pick<SelectionOptions, 'schema' | 'document'>,
): SelectedField {
  let found: SelectedField | undefined;
  const typeInfo = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(typeInfo, {
      Field(node) {
        const type = typeInfo.getType();
        if ((node.alias ?? node.name).value !== name || !type) return undefined;
        const description = typeInfo.getFieldDef()?.description ?? undefined;
        found = { type, selectionSet: node.selectionSet, description };
        return BREAK;
      },
    }),
  );
  if (!found) throw new Error(`A stored document gives no ${name}.`);
  return found;
}

/** The schema of a field where it is there: null is an error then. */
export function schemaOfPresent(
  { type, selectionSet }: SelectedField,
  options: SelectionOptions,
): JsonSchema {
  return schemaOfType(getNullableType(type), selectionSet, options);
}

/** The envelope of a list: what the document gives, with addresses for the numbers of pages. */
export function schemaOfPage(name: string, options: SelectionOptions): JsonSchema {
  const describe = (field: string) => {
    const { description } = findField(field, options);
    return describedBy(description);
  };
  const link = (which: string) => ({
    type: ['string', 'null'],
    format: 'uri',
    description: `Address of the ${which} page with the same parameters; null where there is none.`,
  });
  const { description } = getNamedType(findField('page', options).type);
  return options.named.refer(name, {
    type: 'object',
    ...describedBy(description),
    properties: {
      count: { ...schemaOfPresent(findField('count', options), options), ...describe('count') },
      next: link('next'),
      previous: link('previous'),
      results: {
        ...schemaOfPresent(findField('results', options), options),
        ...describe('results'),
      },
    },
    required: ['count', 'next', 'previous', 'results'],
  });
}

/** The schema of a value of this type, of which this much is selected. */
function schemaOfOutput(
  type: GraphQLOutputType,
  selectionSet: SelectionSetNode | undefined,
  options: SelectionOptions,
): JsonSchema {
  if (!isNonNullType(type)) return nullable(schemaOfType(type, selectionSet, options));
  return schemaOfType(type.ofType, selectionSet, options);
}

function schemaOfType(
  type: GraphQLOutputType,
  selectionSet: SelectionSetNode | undefined,
  options: SelectionOptions,
): JsonSchema {
  if (isListType(type)) {
    return { type: 'array', items: schemaOfOutput(type.ofType, selectionSet, options) };
  }
  if (isScalarType(type)) return schemaOfScalar(type, options.named);
  if (isEnumType(type)) return { type: 'string', enum: type.getValues().map(({ name }) => name) };
  return schemaOfSelection(type as GraphQLNamedType, selectionSet, options);
}

/** A selection that is one fragment has the name of that. */
function schemaOfSelection(
  type: GraphQLNamedType,
  selectionSet: SelectionSetNode | undefined,
  options: SelectionOptions,
): JsonSchema {
  const selections = selectionSet?.selections ?? [];
  const properties: Record<string, JsonSchema> = {};
  const required = new Set<string>();
  const add = (selection: SelectionNode, parent: GraphQLNamedType, isSure: boolean): void => {
    const sure = isSure && (selection.directives ?? []).length === 0;
    if (selection.kind === Kind.FIELD) {
      const name = selection.alias?.value ?? selection.name.value;
      properties[name] = schemaOfField(selection, parent, wireNames, options);
      if (sure) required.add(name);
      return;
    }
    const inner = findSelection(selection, options.document);
    const condition = options.schema.getType(inner?.typeCondition ?? '');
    const isOther = condition !== undefined && condition !== parent;
    for (const child of inner?.selections ?? []) add(child, condition ?? parent, sure && !isOther);
  };
  const wireNames = findWireNames(selections, options.document);
  for (const selection of selections) add(selection, type, true);
  const object = {
    type: 'object',
    ...describedBy(type.description),
    properties,
    required: [...required],
  };
  const [only, ...others] = selections;
  const isFragment = only?.kind === Kind.FRAGMENT_SPREAD && others.length === 0;
  return isFragment ? options.named.refer(only.name.value, object) : object;
}

function schemaOfField(
  { name, selectionSet }: FieldNode,
  parent: GraphQLNamedType,
  wireNames: ReadonlyMap<string, string>,
  options: SelectionOptions,
): JsonSchema {
  if (name.value === '__typename') return { type: 'string' };
  const hasFields = isObjectType(parent) || isInterfaceType(parent);
  const field = hasFields ? parent.getFields()[name.value] : undefined;
  if (!field) throw new Error(`${parent.name} has no field ${name.value}.`);
  const description = inWireNames(field.description, wireNames);
  return { ...schemaOfOutput(field.type, selectionSet, options), ...describedBy(description) };
}

interface Inner {
  readonly selections: readonly SelectionNode[];
  readonly typeCondition: string | undefined;
}

/** What a fragment selects, inline or not. */
function findSelection(
  selection: Exclude<SelectionNode, FieldNode>,
  { definitions }: DocumentNode,
): Inner | undefined {
  const fragment =
    selection.kind === Kind.INLINE_FRAGMENT
      ? selection
      : definitions.find(
          (definition) =>
            definition.kind === Kind.FRAGMENT_DEFINITION &&
            definition.name.value === selection.name.value,
        );
  if (!fragment || !('selectionSet' in fragment) || !fragment.selectionSet) return undefined;
  const typeCondition =
    'typeCondition' in fragment ? fragment.typeCondition?.name.value : undefined;
  return { selections: fragment.selectionSet.selections, typeCondition };
}

/** The aliases of fields, for descriptions that name other fields. */
function findWireNames(
  selections: readonly SelectionNode[],
  document: DocumentNode,
): ReadonlyMap<string, string> {
  return new Map(
    selections.flatMap((selection): [string, string][] => {
      if (selection.kind !== Kind.FIELD) {
        return [...findWireNames(findSelection(selection, document)?.selections ?? [], document)];
      }
      return selection.alias ? [[selection.name.value, selection.alias.value]] : [];
    }),
  );
}

/**
 * A description that names fields and choices of GraphQL, with their names on the wire.
 * @param names by those of GraphQL; one that is a plain word stays, as it may mean just that
 */
export function inWireNames(
  description: string | null | undefined,
  names: ReadonlyMap<string, string>,
): string | undefined {
  return description?.replace(/\b(?:[a-z]+[A-Z]\w*|[A-Z][A-Z\d_]+)\b/g, (word) => {
    const name = names.get(word);
    return name === undefined ? word : `\`${name}\``;
  });
}
