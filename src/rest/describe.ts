// What OPTIONS says of the fields.
import {
  type DocumentNode,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isObjectType,
  Kind,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { WritableField } from './create.ts';

interface FieldDescription {
  readonly type: string;
  readonly required: boolean;
  readonly read_only: boolean;
  readonly label: string;
  readonly max_length?: unknown;
  readonly choices?: readonly { readonly value: unknown; readonly display_name: unknown }[];
  readonly children?: FieldDescriptions;
}

type FieldDescriptions = Readonly<Record<string, FieldDescription>>;

/** Describes the fields of the record that a create document gives, in their order. */
export function describeRecord(
  schema: GraphQLSchema,
  document: DocumentNode,
  writable: readonly WritableField[],
): FieldDescriptions {
  let description: FieldDescriptions = {};
  const typeInfo = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(typeInfo, {
      Field({ alias, selectionSet }) {
        if (alias?.value !== 'record' || !selectionSet) return;
        const type = getNamedType(typeInfo.getType());
        if (type) description = describeSelection(document, selectionSet, type, writable);
      },
    }),
  );
  return description;
}

function describeSelection(
  document: DocumentNode,
  { selections }: SelectionSetNode,
  parent: GraphQLNamedType,
  writable: readonly WritableField[],
): FieldDescriptions {
  const fields = isObjectType(parent) ? parent.getFields() : {};
  return Object.assign(
    {},
    ...selections.map((selection) => {
      if (selection.kind === Kind.FIELD) {
        const name = selection.alias?.value ?? selection.name.value;
        const field = writable.find((candidate) => candidate.name === name);
        if (field) return { [name]: describeWritable(field) };
        const type = getNamedType(fields[selection.name.value]?.type);
        const children =
          type && selection.selectionSet
            ? { children: describeSelection(document, selection.selectionSet, type, []) }
            : {};
        return { [name]: { ...describeReadOnly(name, type), ...children } };
      }
      const spread =
        selection.kind === Kind.FRAGMENT_SPREAD
          ? document.definitions.find(
              (definition) =>
                definition.kind === Kind.FRAGMENT_DEFINITION &&
                definition.name.value === selection.name.value,
            )
          : selection;
      return spread && 'selectionSet' in spread && spread.selectionSet
        ? describeSelection(document, spread.selectionSet, parent, writable)
        : {};
    }),
  );
}

function describeReadOnly(name: string, type: GraphQLNamedType | undefined): FieldDescription {
  return { type: nameType(type), required: false, read_only: true, label: labelOf(name) };
}

function describeWritable({ name, input, type }: WritableField): FieldDescription {
  const { maxLength, required } = input.extensions;
  return {
    type: nameType(type),
    required: required === true,
    read_only: false,
    label: labelOf(name),
    ...(maxLength === undefined ? {} : { max_length: maxLength }),
    ...(isEnumType(type)
      ? { choices: type.getValues().map(({ value }) => ({ value, display_name: value })) }
      : {}),
  };
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
