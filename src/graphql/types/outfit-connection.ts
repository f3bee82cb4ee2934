// Connections (keyset pagination): outfitConnection(...), User.outfitConnection(...), Viewer.likedOutfits(...).
// @see https://relay.dev/graphql/connections.htm
import type { InputShapeFromFields } from '@pothos/core';
import { createOutfitList, hasOutfitAt, type OutfitList } from '../../outfits/lists/list.ts';
import { maxRows } from '../../outfits/lists/statements.ts';
import {
  formatCursor,
  type Ordering,
  parseCursor,
  type SortKey,
  sortKeyOf,
} from '../../outfits/ordering.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import type { CostConfig, CountItems } from '../engine/cost.ts';
import { badUserInput } from '../errors.ts';
import { Outfit } from './outfit.ts';
import { filterOf, OutfitFilter, OutfitOrdering, orderingOf } from './outfit-arguments.ts';
import { weighFilter, weighFilterOfUser } from './outfit-page.ts';
import { User } from './user.ts';
import { Viewer } from './viewer.ts';

/** One less than a statement may read: one row more shows whether there is a next page. */
const maxPerRequest = maxRows - 1;

/** An empty range counts as one, since it is read too. */
const countItems: CountItems = ({ first, last }, config) =>
  Math.min(Math.max(Number(first ?? last ?? defaultSize(config)), 1), maxPerRequest);

interface Connection {
  readonly list: OutfitList;
  readonly edges: readonly { readonly cursor: string; readonly node: OutfitRow }[];
  readonly pageInfo: {
    readonly startCursor: string | null;
    readonly endCursor: string | null;
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
  };
}

const OutfitEdge = builder.edgeObject({
  type: Outfit,
  name: 'OutfitEdge',
  description: 'An outfit and its place in the list.',
});

const OutfitConnection = builder.objectRef<Connection>('OutfitConnection').implement({
  description: 'A range of a list of outfits.',
  fields: (t) => ({
    edges: t.field({
      type: [OutfitEdge],
      description: 'The items of this range, each with its cursor.',
      resolve: ({ edges }) => [...edges],
    }),
    pageInfo: t.field({
      type: builder.pageInfoRef(),
      description: 'Where this range begins and ends.',
      resolve: ({ pageInfo }) => pageInfo,
    }),
    totalCount: t.int({
      description: 'Outfits in the whole list.',
      resolve: ({ list }) => list.count(),
    }),
  }),
});

const connectionArguments = builder.args((t) => ({
  ...t.connectionArgs(),
  ordering: t.field({
    type: OutfitOrdering,
    description: 'What to sort by; newest first when omitted.',
  }),
  filter: t.field({ type: OutfitFilter, description: 'What narrows the list.' }),
}));

type ConnectionArguments = InputShapeFromFields<typeof connectionArguments>;

builder.queryField('outfitConnection', (t) =>
  t.field({
    type: OutfitConnection,
    nullable: true,
    description:
      'All outfits as a Relay connection, for scrolling. A cursor holds its place in the list even when its outfit is deleted.',
    args: connectionArguments,
    extensions: { countItems, weighFilter },
    resolve: (_root, args, context) =>
      resolveConnection(
        createOutfitList(context.read, context.visibility, filterOf(args.filter)),
        args,
        context,
      ),
  }),
);

builder.prismaObjectField(User, 'outfitConnection', (t) =>
  t.field({
    type: OutfitConnection,
    nullable: true,
    description: 'The outfits of this user as a Relay connection, for scrolling.',
    args: connectionArguments,
    extensions: { countItems, weighFilter: weighFilterOfUser },
    resolve: ({ id }, args, context) =>
      resolveConnection(context.userLists(id, filterOf(args.filter)), args, context),
  }),
);

builder.objectField(Viewer, 'likedOutfits', (t) =>
  t.field({
    type: OutfitConnection,
    nullable: true,
    description: 'The visible outfits that the viewer likes, as a Relay connection.',
    args: connectionArguments,
    // Even without a filter, all likes of the viewer are read.
    extensions: {
      countItems,
      weighFilter: (args: Record<string, unknown>) => Math.max(weighFilterOfUser(args), 1),
    },
    resolve: ({ userId }, args, context) => {
      const filter = { ...filterOf(args.filter), likedBy: userId };
      const list = createOutfitList(context.read, context.visibility, filter);
      return resolveConnection(list, args, context);
    },
  }),
);

async function resolveConnection(
  list: OutfitList,
  range: ConnectionArguments,
  { config }: Context,
): Promise<Connection> {
  const ordering = orderingOf(range.ordering);
  const first = readLimit('first', range.first);
  const last = readLimit('last', range.last);
  const after = readCursor('after', range.after, ordering);
  const before = readCursor('before', range.before, ordering);

  const forward = first !== undefined || last === undefined;
  const from = forward ? 'start' : 'end';
  const size = first ?? last ?? defaultSize(config);
  const [rows, beyondAfter, beyondBefore] = await Promise.all([
    list.keysetPage({ ordering, after, before, limit: size + 1, from }),
    after ? hasOutfitAt(list, ordering, after, 'before') : false,
    before ? hasOutfitAt(list, ordering, before, 'after') : false,
  ]);
  const more = rows.length > size;
  const slice = forward ? rows.slice(0, size) : rows.slice(more ? 1 : 0);
  // With both `first` and `last`: the last of the first.
  const kept =
    forward && last !== undefined ? slice.slice(Math.max(0, slice.length - last)) : slice;

  const { field } = ordering;
  const edges = kept.map((row) => ({
    cursor: formatCursor(field, sortKeyOf(row, field)),
    node: row,
  }));
  return {
    list,
    edges,
    pageInfo: {
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
      hasNextPage: forward ? more : beyondBefore,
      hasPreviousPage: forward ? beyondAfter || kept.length < slice.length : more,
    },
  };
}

function defaultSize({ pageSize }: CostConfig): number {
  return Math.min(pageSize, maxPerRequest);
}

function readLimit(name: 'first' | 'last', value: number | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined;
  if (value >= 0 && value <= maxPerRequest) return value;
  throw badUserInput(`${name} must be from 0 to ${maxPerRequest}, but it is ${value}.`);
}

function readCursor(
  name: 'after' | 'before',
  cursor: string | null | undefined,
  ordering: Ordering,
): SortKey | undefined {
  if (cursor === null || cursor === undefined) return undefined;
  const place = parseCursor(cursor);
  if (!place) throw badUserInput(`${name} is not a cursor of this list.`);
  if (place.field !== ordering.field) {
    throw badUserInput(
      `${name} is a cursor of a list with another ordering: start again without it.`,
    );
  }
  return place.key;
}
