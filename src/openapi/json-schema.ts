// JSON Schemas of GraphQL types, and where named ones are kept.
import {
  type GraphQLEnumType,
  type GraphQLNamedType,
  type GraphQLScalarType,
  isEnumType,
  isSpecifiedScalarType,
} from 'graphql';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The parts of one kind that a document gives a name. */
class NamedParts<Part> {
  readonly #kind: string;
  readonly #parts = new Map<string, Part>();

  constructor(kind: string) {
    this.#kind = kind;
  }

  /** A reference to a part of that name; the part itself where the name stands for another one. */
  refer(name: string, part: Part): Part | Reference {
    const known = this.#parts.get(name);
    if (known && JSON.stringify(known) !== JSON.stringify(part)) return part;
    this.#parts.set(name, part);
    return { $ref: `#/components/${this.#kind}/${name}` };
  }

  toObject(): Readonly<Record<string, Part>> {
    return Object.fromEntries([...this.#parts].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}

type Reference = { readonly $ref: string };

export class NamedSchemas extends NamedParts<JsonSchema> {
  constructor() {
    super('schemas');
  }
}

export class NamedHeaders extends NamedParts<JsonSchema> {
  constructor() {
    super('headers');
  }
}

const specified: Readonly<Record<string, JsonSchema>> = {
  Boolean: { type: 'boolean' },
  Float: { type: 'number', format: 'double' },
  ID: { type: 'string' },
  Int: { type: 'integer', format: 'int32' },
  String: { type: 'string' },
};

/** Formats of the scalars that are this service's own. */
const formats: Readonly<Record<string, JsonSchema>> = {
  DateTime: { type: 'string', format: 'date-time' },
};

/** The schema of a scalar. */
export function schemaOfScalar(type: GraphQLScalarType, named: NamedSchemas): JsonSchema {
  if (isSpecifiedScalarType(type)) return specified[type.name] ?? {};
  return named.refer(type.name, { ...formats[type.name], ...describedBy(type.description) });
}

/** The schema of a value that comes in; an enum's inner values are the spellings on the wire. */
export function schemaOfInput(type: GraphQLNamedType, named: NamedSchemas): JsonSchema {
  if (isEnumType(type)) return { type: 'string', enum: type.getValues().map(({ value }) => value) };
  return schemaOfScalar(type as GraphQLScalarType, named);
}

/** What the choices of an enum mean, by their spellings on the wire. */
export function describeChoices(type: GraphQLEnumType): string {
  return type
    .getValues()
    .map(({ value, description }) => `- \`${value}\`: ${description ?? ''}`)
    .join('\n');
}

export function nullable(schema: JsonSchema): JsonSchema {
  const { type, enum: choices } = schema;
  return typeof type === 'string'
    ? {
        ...schema,
        type: [type, 'null'],
        ...(Array.isArray(choices) ? { enum: [...choices, null] } : {}),
      }
    : { anyOf: [schema, { type: 'null' }] };
}

/** No key at all where there is no description. */
export function describedBy(...texts: readonly (string | null | undefined)[]): JsonSchema {
  const description = texts.filter((text) => text).join('\n\n');
  return description === '' ? {} : { description };
}
