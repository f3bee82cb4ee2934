// JSON Schemas from the GraphQL schema: of the selections and of the variables of stored documents.
import {
  type ConstValueNode,
  type DocumentNode,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  isListType,
  isNonNullType,
  isScalarType,
  isSpecifiedScalarType,
  Kind,
  valueFromASTUntyped,
} from 'graphql';
import { type FoundInput, findField, listFields, type SelectedField } from '../describe.ts';
import { type Envelope, relationOf } from '../documents.ts';

/** As much of JSON Schema as is read here. @see https://spec.openapis.org/oas/v3.1.1 */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly anyOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly examples?: readonly unknown[];
  readonly [keyword: string]: unknown;
}

const scalars: Readonly<Record<string, JsonSchema>> = {
  Boolean: { type: 'boolean' },
  DateTime: { type: 'string', format: 'date-time' },
  Float: { type: 'number', format: 'double' },
  ID: { type: 'string' },
  Int: { type: 'integer', format: 'int32' },
  String: { type: 'string' },
};

export class Schemas {
  readonly #schema: GraphQLSchema;
  readonly #components: Map<string, JsonSchema>;

  constructor(schema: GraphQLSchema, components: Readonly<Record<string, JsonSchema>>) {
    this.#schema = schema;
    this.#components = new Map(Object.entries(components));
  }

  get components(): JsonSchema {
    return Object.fromEntries(this.#components);
  }

  /** A reference to a component; the schema itself when another component has this name. */
  refer(name: string, schema: JsonSchema): JsonSchema {
    const other = this.#components.get(name);
    if (other && JSON.stringify(other) !== JSON.stringify(schema)) return schema;
    this.#components.set(name, schema);
    return { $ref: `#/components/schemas/${name}` };
  }

  findField(document: DocumentNode, ...path: string[]): SelectedField {
    return findField(this.#schema, document, ...path);
  }

  /** Schema of a page, by the template of its envelope. @param linkTo gives the example of a link */
  ofPage({ fields, template }: Envelope, linkTo: (relation: string) => string): JsonSchema {
    const write = (node: ConstValueNode): JsonSchema => {
      if (node.kind === Kind.LIST) return { type: 'array', prefixItems: node.values.map(write) };
      if (node.kind === Kind.OBJECT) {
        const members = node.fields.map(({ name, value }) => [name.value, write(value)] as const);
        return toObject(members, () => true);
      }
      const field = node.kind === Kind.ENUM && fields.get(node.value);
      if (!field) return { const: valueFromASTUntyped(node) };
      const relation = relationOf(field);
      if (!relation) return this.#ofSelected(field, 'OutfitPage');
      const description = `Address of the ${relation === 'next' ? 'next' : 'previous'} page with the same parameters; null where that page does not exist.`;
      const examples = [linkTo(relation)];
      return { type: ['string', 'null'], format: 'uri', description, examples };
    };
    return write(template);
  }

  /** Schema of a field, without null. */
  ofField(field: SelectedField): JsonSchema {
    const type = getNullableType(field.type);
    if (isListType(type)) {
      return { type: 'array', items: this.#ofNullable({ ...field, type: type.ofType }) };
    }
    if (isScalarType(type)) return this.#ofScalar(type);
    if (isEnumType(type)) {
      return { type: 'string', enum: type.getValues().map(({ name }) => name) };
    }
    const fields = listFields(this.#schema, field);
    const names = new Map(fields.map(({ graphqlName, name }) => [graphqlName, name]));
    const properties = fields.map((inner) => {
      const text = describedBy(inWireNames(inner.description, names));
      return [inner.name, { ...this.#ofSelected(inner, type.name), ...text }] as const;
    });
    const sure = new Set(fields.filter((one) => one.isAlwaysThere).map(({ name }) => name));
    const object = {
      ...describedBy(type.description),
      ...toObject(properties, (name) => sure.has(name)),
    };
    // A selection of a single fragment is named after the fragment.
    const [only, ...more] = field.selectionSet?.selections ?? [];
    const isFragment = only?.kind === Kind.FRAGMENT_SPREAD && more.length === 0;
    return isFragment ? this.refer(only.name.value, object) : object;
  }

  /** Schema of a parameter: internal values of enums are the spellings on the wire. */
  ofInput(type: GraphQLNamedType, description?: string | null): JsonSchema {
    if (!isEnumType(type)) return { ...this.#ofScalar(type), ...describedBy(description) };
    const choices = type.getValues();
    const meanings = choices.map((choice) => `- \`${choice.value}\`: ${choice.description}`);
    const names = new Map(choices.map(({ name, value }) => [name, String(value)]));
    return {
      type: 'string',
      enum: choices.map(({ value }) => value),
      ...describedBy(inWireNames(description, names), meanings.join('\n')),
    };
  }

  /** Schema of a body: its fields are the variables of a stored document. */
  ofBody(fields: readonly FoundInput[]): JsonSchema {
    const names = new Map(fields.map(({ input, name }) => [input.name, name]));
    const properties = fields.map(({ name, input, type }) => {
      const { example, maxLength, mayBeBlank, mayBeNull } = input.extensions;
      const schema = {
        ...this.ofInput(type, inWireNames(input.description, names)),
        ...(type.name === 'String' && !mayBeBlank ? { minLength: 1 } : {}),
        ...(maxLength === undefined ? {} : { maxLength }),
        ...(example === undefined ? {} : { examples: [example] }),
      };
      return [name, mayBeNull ? nullable(schema) : schema] as const;
    });
    const required = new Set(
      fields.filter(({ input }) => input.extensions['required']).map(({ name }) => name),
    );
    return toObject(properties, (name) => required.has(name));
  }

  #ofScalar(type: GraphQLNamedType): JsonSchema {
    const schema = scalars[type.name] ?? {};
    if (isSpecifiedScalarType(type)) return schema;
    return this.refer(type.name, { ...schema, ...describedBy(type.description) });
  }

  /** With its description and an example. */
  #ofSelected(field: SelectedField, parent: string): JsonSchema {
    const schema = this.#ofNullable(field);
    const example = examples[`${parent}.${field.graphqlName}`];
    return {
      ...(field.isAlwaysThere ? schema : nullable(schema)),
      ...describedBy(field.description),
      ...(example === undefined ? {} : { examples: [example] }),
    };
  }

  #ofNullable(field: SelectedField): JsonSchema {
    const schema = this.ofField(field);
    return isNonNullType(field.type) ? schema : nullable(schema);
  }
}

function toObject(
  properties: readonly (readonly [name: string, schema: JsonSchema])[],
  isRequired: (name: string) => boolean,
): JsonSchema {
  const required = properties.map(([name]) => name).filter(isRequired);
  return { type: 'object', properties: Object.fromEntries(properties), required };
}

interface Described {
  readonly description?: string;
}

/** Without a description, the key is absent. */
export function describedBy(...texts: readonly (string | null | undefined)[]): Described {
  const description = texts.filter(Boolean).join('\n\n');
  return description === '' ? {} : { description };
}

function nullable(schema: JsonSchema): JsonSchema {
  const { type, enum: choices } = schema;
  if (typeof type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  const orNull = { ...schema, type: [type, 'null'] };
  return Array.isArray(choices) ? { ...orNull, enum: [...choices, null] } : orNull;
}

/** Replaces GraphQL names in a description by names on the wire, except names that are plain words. */
function inWireNames(text: string | null | undefined, names: ReadonlyMap<string, string>) {
  return text?.replace(/\b(?:[a-z]+[A-Z]\w*|[A-Z][A-Z\d_]+)\b/g, (word) =>
    names.has(word) ? `\`${names.get(word)}\`` : word,
  );
}
const image = 'https://media.example.com/outfits/0b8f7c52-6d0e-4a51-9a3c-5c7f0e1d2b34.jpeg';

export const examples: Readonly<Record<string, unknown>> = {
  'Outfit.backgroundColor': '#f5f0e8',
  'Outfit.complete': true,
  'Outfit.created': '2026-11-22T08:14:09.482913Z',
  'Outfit.creationDevice': 'ios',
  'Outfit.databaseId': 2417,
  'Outfit.description': 'Wool coat over a striped shirt #autumn',
  'Outfit.imageKey': image,
  'Outfit.imageOriginalUrl': image,
  'Outfit.likes': 38,
  'Outfit.modificationDevice': '',
  'Outfit.modified': '2026-11-22T08:14:09.482913Z',
  'Outfit.playVideo': false,
  'Outfit.private': false,
  'Outfit.quality': 4,
  'Outfit.title': 'Red coat for a grey day',
  'Outfit.video': null,
  'OutfitPage.count': 2417,
  'OutfitPage.page': 2,
  'OutfitPage.pageCount': 121,
  'User.avatarKey': 'avatars/5f1d3a77-2c49-4d0b-8e6a-9b0c1d2e3f45.png',
  'User.databaseId': 112,
  'User.firstName': 'Maya',
  'User.lastName': 'Olsen',
  'User.username': 'maya_olsen',
};
