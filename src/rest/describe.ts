// Introspection of stored documents: the fields they select, and the answer to OPTIONS.
import {
  type ASTNode,
  type DocumentNode,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isEnumType,
  isInputObjectType,
  isObjectType,
  Kind,
  type SelectionSetNode,
  TypeInfo,
  TypeNameMetaFieldDef,
  visit,
  visitWithTypeInfo,
} from 'graphql';

/** A variable of a stored document, and the argument or input field that has it as its value. */
export interface FoundInput {
  readonly name: string;
  readonly input: GraphQLArgument | GraphQLInputField;
  readonly type: GraphQLNamedType;
  /** If not, it is a field of a body. */
  readonly isArgument: boolean;
}

export function findInputs(schema: GraphQLSchema, document: ASTNode): FoundInput[] {
  const found: FoundInput[] = [];
  const typeInfo = new TypeInfo(schema);
  const visitor = visitWithTypeInfo(typeInfo, {
    enter(node) {
      const isArgument = node.kind === Kind.ARGUMENT;
      if (!isArgument && node.kind !== Kind.OBJECT_FIELD) return;
      const parent = getNamedType(typeInfo.getParentInputType());
      const fields = isInputObjectType(parent) ? parent.getFields() : {};
      const input = isArgument ? typeInfo.getArgument() : fields[node.name.value];
      if (!input || node.value.kind !== Kind.VARIABLE) return;
      const type = getNamedType(input.type);
      found.push({ name: node.value.name.value, input, type, isArgument });
    },
  });
  visit(document, visitor);
  return found;
}

interface Selected {
  readonly document: DocumentNode;
  readonly selectionSet: SelectionSetNode | undefined;
  readonly type: GraphQLOutputType | null | undefined;
}

export interface SelectedField extends Selected {
  /** The alias: the name on the wire. */
  readonly name: string;
  readonly graphqlName: string;
  readonly type: GraphQLOutputType;
  readonly description: string | null | undefined;
  /** False behind a directive or a condition on the type. */
  readonly isAlwaysThere: boolean;
}

/** @param path names on the wire, from the root of the document */
export function findField(
  schema: GraphQLSchema,
  document: DocumentNode,
  ...path: string[]
): SelectedField {
  const operation = getOperationAST(document);
  const type = operation && schema.getRootType(operation.operation);
  const root = { document, selectionSet: operation?.selectionSet, type };
  let found: SelectedField | undefined;
  for (const name of path) {
    const fields: SelectedField[] = listFields(schema, found ?? root);
    found = fields.find((field) => field.name === name);
    if (!found) break;
  }
  if (!found) throw new Error(`A stored document gives no ${path.join('.')}.`);
  return found;
}

export function listFields(
  schema: GraphQLSchema,
  { document, selectionSet, type }: Selected,
  isSure = true,
): SelectedField[] {
  const parent = getNamedType(type);
  return (selectionSet?.selections ?? []).flatMap((selection): SelectedField[] => {
    const isAlwaysThere = isSure && !selection.directives?.length;
    if (selection.kind === Kind.FIELD) {
      const { name, alias, selectionSet } = selection;
      const fields = parent && 'getFields' in parent ? parent.getFields() : {};
      const field = name.value === '__typename' ? TypeNameMetaFieldDef : fields[name.value];
      if (!field || !('args' in field)) throw new Error(`${parent} has no field ${name.value}.`);
      const names = { name: (alias ?? name).value, graphqlName: name.value };
      const { type, description } = field;
      return [{ ...names, type, description, isAlwaysThere, document, selectionSet }];
    }
    const fragment =
      selection.kind === Kind.INLINE_FRAGMENT
        ? selection
        : document.definitions
            .filter((one) => one.kind === Kind.FRAGMENT_DEFINITION)
            .find(({ name }) => name.value === selection.name.value);
    const condition = fragment?.typeCondition;
    const inner = condition ? (schema.getType(condition.name.value) as typeof parent) : parent;
    const selected = {
      document,
      selectionSet: fragment?.selectionSet,
      type: inner as Selected['type'],
    };
    return listFields(schema, selected, isAlwaysThere && inner === parent);
  });
}

type Descriptions = Readonly<Record<string, unknown>>;

/** The answer to OPTIONS, as Django REST Framework writes it. */
export function describeFields(
  schema: GraphQLSchema,
  selected: SelectedField,
  writable: readonly FoundInput[],
): Descriptions {
  const descriptions = listFields(schema, selected).map((field) => {
    const written = writable.find(({ name }) => name === field.name);
    const type = getNamedType((written?.input ?? field).type);
    const { maxLength, required } = written?.input.extensions ?? {};
    const choices = written && isEnumType(type) ? type.getValues() : undefined;
    const description = {
      type: nameType(type),
      required: required === true,
      read_only: !written,
      label: labelOf(field.name),
      ...(maxLength === undefined ? {} : { max_length: maxLength }),
      ...(choices && {
        choices: choices.map(({ value }) => ({ value, display_name: value })),
      }),
      ...(!written && field.selectionSet && { children: describeFields(schema, field, []) }),
    };
    return [field.name, description];
  });
  return Object.fromEntries(descriptions);
}

const typeNames: Readonly<Record<string, string>> = {
  Boolean: 'boolean',
  DateTime: 'datetime',
  Int: 'integer',
  String: 'string',
};

function nameType(type: GraphQLNamedType | undefined): string {
  if (isEnumType(type)) return 'choice';
  return isObjectType(type) ? 'nested object' : (typeNames[type?.name ?? ''] ?? 'field');
}

function labelOf(name: string): string {
  if (name === 'id') return 'ID';
  const words = name.replaceAll('_', ' ');
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}
