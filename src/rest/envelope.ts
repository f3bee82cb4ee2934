// How a page is written: fields of the document in the keys of the answer, and in headers.
import {
  type ConstValueNode,
  type DocumentNode,
  type GraphQLSchema,
  Kind,
  valueFromASTUntyped,
} from 'graphql';
import { findField, listFields, type SelectedField } from './describe.ts';

/** Fields of a page that are numbers in GraphQL, and links on the wire, with their relation in the header `Link`. */
const relations: Readonly<Record<string, 'next' | 'prev'>> = {
  nextOffset: 'next',
  nextPage: 'next',
  previousOffset: 'prev',
  previousPage: 'prev',
};

export interface Envelope {
  readonly template: ConstValueNode;
  /** Fields of the page by their names on the wire. */
  readonly fields: ReadonlyMap<string, SelectedField>;
  /** The name of the field with the records. */
  readonly records: string;
  readonly headers: readonly { readonly name: string; readonly fields: readonly string[] }[];
}

/** As @route says it. */
export interface Written {
  /** With fields of the page as names; undefined: an object of them in their order. */
  readonly template?: ConstValueNode | undefined;
  /** With fields of the page as values, such as `X-Total-Count: count` or `Link: next previous`. */
  readonly headers?: readonly string[] | undefined;
}

export type ReadField = (name: string) => unknown;

const headerPattern = /^([\w!#$%&'*+.^`|~-]+): *(\w+(?: +\w+)*)$/;
/** What HTTP or this service sets. */
const reserved =
  /^(?:access-control-.*|allow|cache-control|connection|content-.*|date|etag|retry-after|set-cookie|transfer-encoding|vary)$/i;

/** @throws when it names a field that the page does not have */
export function readEnvelope(
  schema: GraphQLSchema,
  document: DocumentNode,
  given: Written,
): Envelope {
  const listed = listFields(schema, findField(schema, document, 'page'));
  const fields = new Map(listed.map((field) => [field.name, field]));
  const check = (place: string) => (name: string) => {
    if (fields.has(name)) return;
    throw new Error(`${place} names ${name}, but page has ${[...fields.keys()].join(', ')}`);
  };
  const template = given.template ?? objectOf([...fields.keys()]);
  fill(template, check('its envelope'));
  const headers = (given.headers ?? []).map((text) => {
    const [, name = '', values = ''] = headerPattern.exec(text) ?? [];
    if (name === '' || reserved.test(name)) {
      throw new Error(
        `the header ${JSON.stringify(text)} must be a name of your own and fields of page, such as "X-Total-Count: count" or "Link: next previous"`,
      );
    }
    values.split(/ +/).forEach(check(`the header ${name}`));
    return { name, fields: values.split(/ +/) };
  });
  const records = listed.find(({ graphqlName }) => graphqlName === 'results')?.name ?? 'results';
  return { template, fields, records, headers };
}

export const relationOf = ({ graphqlName }: Pick<SelectedField, 'graphqlName'>) =>
  relations[graphqlName];

function objectOf(names: readonly string[]): ConstValueNode {
  const fields = names.map((name) => ({
    kind: Kind.OBJECT_FIELD as const,
    name: { kind: Kind.NAME as const, value: name },
    value: { kind: Kind.ENUM as const, value: name },
  }));
  return { kind: Kind.OBJECT, fields };
}

function fill(node: ConstValueNode, read: ReadField): unknown {
  if (node.kind === Kind.ENUM) return read(node.value) ?? null;
  if (node.kind === Kind.LIST) return node.values.map((value) => fill(value, read));
  if (node.kind !== Kind.OBJECT) return valueFromASTUntyped(node);
  return Object.fromEntries(node.fields.map(({ name, value }) => [name.value, fill(value, read)]));
}

/** The texts before and behind the records, which are encoded once for all envelopes. */
export function writeEnvelope(
  { template, records }: Envelope,
  read: ReadField,
): readonly [head: string, tail: string] {
  const filled = fill(template, (name) => (name === records ? '\0' : read(name)));
  const [head = '', tail = ''] = JSON.stringify(filled).split('"\\u0000"');
  return [head, tail];
}

/** Undefined: the route has none. A header whose fields are all null is left out. */
export function writeHeaders({ headers, fields }: Envelope, read: ReadField) {
  if (headers.length === 0) return undefined;
  const written = headers.flatMap((header) => {
    const values = header.fields.flatMap((name) => {
      const value = read(name) ?? null;
      const relation = relationOf({ graphqlName: '', ...fields.get(name) });
      return value === null ? [] : relation ? `<${value}>; rel="${relation}"` : String(value);
    });
    return values.length > 0 ? [[header.name, values.join(', ')] as const] : [];
  });
  return Object.fromEntries(written);
}
