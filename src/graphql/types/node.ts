// Node, node(id), nodes(ids), and global ids. @see https://relay.dev/graphql/objectidentification.htm
import type { InputShapeFromFields } from '@pothos/core';
import { decodeGlobalID, encodeGlobalID } from '@pothos/plugin-relay';
import { cut } from '../../errors.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { badUserInput } from '../errors.ts';

const loaders = {
  Outfit: (id: number, { records }: Context) => records.outfits.load(id),
  User: (id: number, { prisma }: Context) => prisma.user.findUnique({ where: { id } }),
};

type NodeType = keyof typeof loaders;

const maxNodes = 100;
/** More characters than an id of this service has. */
const maxIdLength = 50;

export const Node = builder.interfaceRef<{ readonly id: number }>('Node').implement({
  description: 'An object with a global identifier, by which `node` fetches it.',
  resolveType: (record): NodeType => ('userId' in record ? 'Outfit' : 'User'),
  fields: (t) => ({
    id: t.id({
      description: 'Opaque identifier, unique across all types.',
      resolve: () => {
        throw new Error('Each type of node resolves its id itself.');
      },
    }),
  }),
});

export function globalIdOf(type: NodeType, id: number): string {
  return encodeGlobalID(type, id);
}

/**
 * @param advice what to do with a number
 * @throws GraphQLError that names the argument when it is malformed, or an id of another type
 */
export function readGlobalId(type: NodeType, text: string, name: string, advice = ''): number {
  const found = parse(text, name, advice);
  if (found.type === type) return found.id;
  throw badUserInput(`${name} is an id of type ${found.type}, but it must be one of type ${type}.`);
}

/** Of what names one object by its id or its number. */
export const identityArguments = builder.args((t) => ({
  id: t.id({ description: 'Its global identifier; without it, give `databaseId`.' }),
  databaseId: t.int({ description: 'Its number, which REST has as its `id`.' }),
}));

/** @throws GraphQLError unless exactly one of both is given */
export function readIdentity(
  type: NodeType,
  { id, databaseId }: InputShapeFromFields<typeof identityArguments>,
): number {
  const isId = typeof id === 'string';
  if (isId === (typeof databaseId === 'number')) {
    throw badUserInput('Give exactly one of id and databaseId.');
  }
  return isId ? readGlobalId(type, id, 'id', ' For a number, use databaseId.') : Number(databaseId);
}

function parse(text: string, name: string, advice: string) {
  try {
    if (text.length > maxIdLength) throw new RangeError();
    const decoded = decodeGlobalID(text);
    const id = Number(decoded.id);
    const type = decoded.typename as NodeType;
    const isKnown = Object.hasOwn(loaders, type) && (id | 0) === id;
    // Only the canonical text: other base64 texts decode to the same bytes, and 007 is not an id.
    if (isKnown && globalIdOf(type, id) === text) return { type, id };
  } catch {
    // Not base64 of a type and an id.
  }
  const shown = JSON.stringify(cut(text, 50));
  throw badUserInput(`${name} is not an id of this service: ${shown}.${advice}`);
}

const adviceForNodes = ' For a number, use outfit(databaseId:) or user(databaseId:).';

function load({ type, id }: ReturnType<typeof parse>, context: Context) {
  return loaders[type](id, context);
}

builder.queryField('node', (t) =>
  t.field({
    type: Node,
    nullable: true,
    description: 'The object with this id; null if the viewer can see none.',
    args: { id: t.arg.id({ required: true, description: 'The id of a node.' }) },
    resolve: (_root, { id }, context) => load(parse(id, 'id', adviceForNodes), context),
  }),
);

builder.queryField('nodes', (t) =>
  t.field({
    type: [Node],
    nullable: { list: true, items: true },
    description: `What has these ids, in their order, or null; at most ${maxNodes}.`,
    args: { ids: t.arg.idList({ required: true, description: 'The ids of nodes.' }) },
    extensions: {
      countItems: ({ ids }: Record<string, unknown>) => (Array.isArray(ids) ? ids.length : 1),
    },
    resolve: (_root, { ids }, context) => {
      if (ids.length > maxNodes) {
        throw badUserInput(`ids must be at most ${maxNodes}, but they are ${ids.length}.`);
      }
      // Parsed before the first load: an error after it would leave unhandled rejections, which end the process.
      const parsed = ids.map((id, index) => parse(id, `ids[${index}]`, adviceForNodes));
      return Promise.all(parsed.map((one) => load(one, context)));
    },
  }),
);
