// Connections (keyset pagination) of any type of node. @see https://relay.dev/graphql/connections.htm
import type { InputShapeFromFields, ObjectRef } from '@pothos/core';
import { hasRowAt, type RangeList } from '../../outfits/lists/list.ts';
import { maxRows } from '../../outfits/lists/statements.ts';
import { formatCursor, type Ordering, parseCursor, type SortKey } from '../../outfits/ordering.ts';
import { builder, DateTime } from '../builder.ts';
import type { Context } from '../context.ts';
import { badUserInput, requireRange } from '../errors.ts';
import type { CostConfig, CountItems } from '../plugins/cost.ts';
import { searchTooShort } from './outfit-arguments.ts';

/** One less than a statement may read: one row more shows whether there is a next page. */
const maxPerRequest = maxRows - 1;

/** An empty range counts as one, since it is read too. */
export const countItems: CountItems = ({ first, last }, config) =>
  Math.min(Math.max(Number(first ?? last ?? defaultSize(config)), 1), maxPerRequest);

interface ConnectionOptions {
  readonly name: string;
  /** The nodes in the plural, for descriptions. */
  readonly names: string;
  /** Each edge is a like. */
  readonly isOfLikes?: true;
  readonly isSearched?: true;
}

interface Liked {
  readonly likedAt?: bigint | null;
}

/** The types `<name>Connection` and `<name>Edge`. */
export function defineConnection<Row extends object>(
  type: ObjectRef<typeof builder.$inferSchemaTypes, Row>,
  { name, names, isOfLikes, isSearched }: ConnectionOptions,
) {
  const Edge = builder.edgeObject({
    type,
    name: `${name}Edge`,
    description: 'An item and its position in the list.',
    fields: (t) => ({
      ...(isOfLikes && {
        likedAt: t.field({
          type: DateTime,
          nullable: true,
          description: 'When it was liked; null for likes that were imported without it.',
          resolve: ({ node }) => (node as Row & Liked).likedAt ?? null,
        }),
      }),
    }),
  });
  return builder.connectionObject(
    {
      type,
      name: `${name}Connection`,
      description: `A range of a list of ${names}.`,
      fields: (t) => ({
        totalCount: t.int({
          description: `Items in the complete list: all ${names} of it that the viewer may see.`,
          resolve: ({ list }) => list.count(),
        }),
        ...(isSearched && {
          searchTooShort: t.boolean({
            ...searchTooShort,
            resolve: (connection) => connection.searchTooShort ?? false,
          }),
        }),
      }),
    },
    Edge,
  );
}

export const rangeArguments = builder.args((t) => t.connectionArgs());

type RangeArguments = InputShapeFromFields<typeof rangeArguments>;

export async function resolveConnection<Row>(
  list: RangeList<Row>,
  range: RangeArguments,
  ordering: Ordering,
  keyOf: (row: Row) => SortKey,
  { config }: Context,
) {
  const first = requireRange('first', range.first, [0, maxPerRequest]);
  const last = requireRange('last', range.last, [0, maxPerRequest]);
  const after = readCursor('after', range.after, ordering);
  const before = readCursor('before', range.before, ordering);

  const forward = first !== undefined || last === undefined;
  const from = forward ? 'start' : 'end';
  const size = first ?? last ?? defaultSize(config);
  const [rows, beyondAfter, beyondBefore] = await Promise.all([
    list.keysetPage({ ordering, after, before, limit: size + 1, from }),
    after ? hasRowAt(list, ordering, after, 'before') : false,
    before ? hasRowAt(list, ordering, before, 'after') : false,
  ]);
  const more = rows.length > size;
  const slice = forward ? rows.slice(0, size) : rows.slice(more ? 1 : 0);
  // With both `first` and `last`: the last of the first.
  const kept =
    forward && last !== undefined ? slice.slice(Math.max(0, slice.length - last)) : slice;

  const edges = kept.map((row) => ({
    cursor: formatCursor(ordering.field, keyOf(row)),
    node: row,
  }));
  return {
    list,
    edges,
    pageInfo: {
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
      // Without `first`, what `before` excludes is behind the range too.
      hasNextPage: (forward && more) || (first === undefined && beyondBefore),
      hasPreviousPage: forward ? beyondAfter || kept.length < slice.length : more,
    },
  };
}

function defaultSize({ pageSize }: CostConfig): number {
  return Math.min(pageSize, maxPerRequest);
}

function readCursor(
  name: 'after' | 'before',
  cursor: string | null | undefined,
  ordering: Ordering,
): SortKey | undefined {
  // Apollo Client sends "" as the cursor of an empty list.
  if (!cursor) return undefined;
  const place = parseCursor(cursor);
  if (!place) throw badUserInput(`${name} is not a cursor of this list.`);
  if (place.field !== ordering.field) {
    throw badUserInput(
      `${name} is a cursor of a list with another ordering: start again without it.`,
    );
  }
  return place.key;
}
