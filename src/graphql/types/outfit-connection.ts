// The Relay connection for scrolling: outfitConnection(...).
import { formatCursor, parseCursor } from '../../outfits/cursor.ts';
import { findKeysetPage, hasOutfitAt, maxRows } from '../../outfits/keyset-page.ts';
import { type Ordering, type SortKey, sortKeyOf } from '../../outfits/ordering.ts';
import { countOutfits } from '../../outfits/pages.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import type { CostConfig, CountItems } from '../cost.ts';
import { badUserInput } from '../errors.ts';
import { Outfit } from './outfit.ts';
import { OutfitOrdering, orderingOf } from './outfit-ordering.ts';

/** One less than a slice can have: the one more tells whether there is a next page. */
const maxPerRequest = maxRows - 1;

interface Range {
  readonly first?: number | null | undefined;
  readonly last?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly before?: string | null | undefined;
}

/** Also a range of none counts as one, since it is read. */
const countItems: CountItems = ({ first, last }, config) =>
  Math.min(Math.max(Number(first ?? last ?? defaultSize(config)), 1), maxPerRequest);

builder.queryField('outfitConnection', (t) =>
  t.connection(
    {
      type: Outfit,
      description:
        'All outfits as a Relay connection, for scrolling. A cursor holds its place in the list even when its outfit is deleted.',
      args: {
        ordering: t.arg({
          type: OutfitOrdering,
          description: 'What to sort by; newest first when omitted.',
        }),
      },
      extensions: { countItems },
      resolve: (_root, args, context) =>
        resolveConnection(orderingOf(args.ordering), args, context),
    },
    {
      name: 'OutfitConnection',
      description: 'A range of the list of all outfits.',
      fields: (connection) => ({
        totalCount: connection.int({
          description: 'Outfits in the whole list.',
          resolve: (_connection, _args, { read, visibility }) => countOutfits(read, visibility),
        }),
      }),
    },
    { name: 'OutfitEdge', description: 'An outfit and its place in the list.' },
  ),
);

async function resolveConnection(ordering: Ordering, range: Range, context: Context) {
  const { read, visibility, config } = context;
  const first = readLimit('first', range.first);
  const last = readLimit('last', range.last);
  const after = readCursor('after', range.after, ordering);
  const before = readCursor('before', range.before, ordering);

  const forward = first !== undefined || last === undefined;
  const size = first ?? last ?? defaultSize(config);
  const [rows, beyondAfter, beyondBefore] = await Promise.all([
    findKeysetPage(read, visibility, {
      ordering,
      after,
      before,
      limit: size + 1,
      from: forward ? 'start' : 'end',
    }),
    after ? hasOutfitAt(read, visibility, ordering, after, 'before') : false,
    before ? hasOutfitAt(read, visibility, ordering, before, 'after') : false,
  ]);
  const more = rows.length > size;
  const slice = forward ? rows.slice(0, size) : rows.slice(more ? 1 : 0);
  // Relay: with both `first` and `last`, the last of the first.
  const kept =
    forward && last !== undefined ? slice.slice(Math.max(0, slice.length - last)) : slice;

  const edges = kept.map((row) => edgeOf(row, ordering));
  return {
    edges,
    pageInfo: {
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
      hasNextPage: forward ? more : beyondBefore,
      hasPreviousPage: forward ? beyondAfter || kept.length < slice.length : more,
    },
  };
}

/** How many are given when neither `first` nor `last` says: a page, if it is not too long. */
function defaultSize({ pageSize }: CostConfig): number {
  return Math.min(pageSize, maxPerRequest);
}

function edgeOf(row: OutfitRow, { field }: Ordering) {
  return { cursor: formatCursor(field, sortKeyOf(row, field)), node: row };
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
