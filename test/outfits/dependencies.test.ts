// What ends an answer: never too little, whatever changes, and seldom too much. Lists are played through in
// memory, so that there are more of them than any database could read.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ChangeLog,
  type Dependencies,
  type OutfitChange,
} from '../../src/database/changes/change-log.ts';
import type { OutfitFilter } from '../../src/outfits/filter.ts';
import {
  dependenciesOfCount,
  dependenciesOfPage,
  dependenciesOfRange,
  dependenciesOfRecords,
  membershipOf,
  type OutfitImage,
  type OutfitKeys,
} from '../../src/outfits/lists/dependencies.ts';
import { beyond, type KeysetPageRequest } from '../../src/outfits/lists/statements.ts';
import { compareKeys, type Ordering, type SortKey, sortKeyOf } from '../../src/outfits/ordering.ts';
import type { Visibility } from '../../src/outfits/visibility.ts';

interface Outfit extends OutfitKeys {
  readonly quality: number;
  readonly title: string;
}

/** The outfits of a moment, by their ids, and the names of users. */
interface Data {
  readonly outfits: ReadonlyMap<number, Outfit>;
  readonly names: readonly string[];
}

/** What one statement does: to a user, or to an outfit, which it saves, changes, or deletes if `change` is undefined. */
type Step =
  | { readonly renamed: number }
  | { readonly saved: Outfit }
  | { readonly id: number; readonly change: Partial<Outfit> | undefined };

/** Statements that commit together, or transactions that write at the same time: each row describes itself alone. */
type Transaction = readonly Step[];

/** What is told, in any order: of an outfit, of its likes, or of a user. */
type Told = { readonly outfit: OutfitChange } | { readonly user: number };

const small = fc.integer({ min: 1, max: 4 });
const ids = fc.integer({ min: 1, max: 9 });
const users = fc.integer({ min: 0, max: 2 });
const moment = fc.bigInt({ min: 1n, max: 5n });
const fields = {
  userId: users,
  private: fc.boolean(),
  likes: small,
  created: moment,
  modified: moment,
  quality: small,
  title: fc.constantFrom('a', 'b'),
};
const outfits: fc.Arbitrary<Outfit> = fc.record({ id: ids, ...fields });
const keys: fc.Arbitrary<SortKey | undefined> = fc.option(fc.record({ value: moment, id: ids }), {
  nil: undefined,
});
const filters: fc.Arbitrary<OutfitFilter> = fc.oneof(
  fc.constant({}),
  fc.record({ userIds: fc.array(users, { maxLength: 2 }) }),
  fc.record({ ids: fc.array(ids, { maxLength: 4 }) }),
  fc.record({ createdFrom: moment, createdBefore: fc.option(moment, { nil: undefined }) }),
  fc.record({ likesFrom: small, likesBelow: fc.option(small, { nil: undefined }) }),
  fc.record({ private: fc.boolean() }),
  fc.record({ quality: fc.array(small, { minLength: 1, maxLength: 3 }) }),
  fc.record({ quality: fc.constant([1, 2]), likesFrom: small }),
);
const readings = fc.record({
  visibility: fc.constantFrom<Visibility>({ private: 'all' }, { private: 'none' }),
  filter: filters,
  /** Whose outfits; undefined: those of everyone. */
  owner: fc.option(users, { nil: undefined }),
  ordering: fc.record({
    field: fc.constantFrom(...(['created', 'id', 'likes', 'modified'] as const)),
    direction: fc.constantFrom(...(['asc', 'desc'] as const)),
  }),
  kind: fc.constantFrom(...(['count', 'page', 'range', 'beyond', 'record'] as const)),
  page: fc.integer({ min: 1, max: 4 }),
  limit: fc.integer({ min: 1, max: 4 }),
  from: fc.constantFrom(...(['start', 'end'] as const)),
  after: keys,
  before: keys,
});
type Reading = typeof readings extends fc.Arbitrary<infer Value> ? Value : never;

/** One field at a time, as most statements do. */
const changes = fc.oneof(
  ...Object.entries(fields).map(([name, values]) =>
    (values as fc.Arbitrary<unknown>).map((value): Partial<Outfit> => ({ [name]: value })),
  ),
);
const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ renamed: users }),
  { weight: 5, arbitrary: fc.record({ saved: outfits }) },
  { weight: 6, arbitrary: fc.record({ id: ids, change: changes }) },
  fc.record({ id: ids, change: fc.constant(undefined) }),
);

/** What a filter means; an outfit of a list that is also asked for by its owner. */
function isIn({ visibility, filter, owner }: Reading, outfit: Outfit): boolean {
  const { ids, userIds, createdFrom, createdBefore, likesFrom, likesBelow, quality } = filter;
  return (
    (visibility.private === 'all' || !outfit.private) &&
    (owner === undefined || outfit.userId === owner) &&
    (ids?.includes(outfit.id) ?? true) &&
    (userIds?.includes(outfit.userId) ?? true) &&
    (createdFrom === undefined || outfit.created >= createdFrom) &&
    (createdBefore === undefined || outfit.created < createdBefore) &&
    (likesFrom === undefined || outfit.likes >= likesFrom) &&
    (likesBelow === undefined || outfit.likes < likesBelow) &&
    (filter.private === undefined || outfit.private === filter.private) &&
    (quality?.includes(outfit.quality) ?? true)
  );
}

/** The key of a cursor: of orderings by id, its value is the id. */
function placeIn({ field }: Ordering, key: SortKey | undefined): SortKey | undefined {
  return key && (field === 'id' ? { value: BigInt(key.id), id: key.id } : key);
}

const textOf = (value: unknown): string =>
  JSON.stringify([value], (_name, part) => (typeof part === 'bigint' ? `${part}n` : part));

/** Reads as the service does, and gives what is shown and what that was made of. */
function read(
  reading: Reading,
  data: Data,
): { shown: string; dependencies: Dependencies | undefined } {
  const { visibility, filter, owner, ordering, kind, page, limit, from } = reading;
  const { field, direction } = ordering;
  const membership = membershipOf(visibility, filter, owner);
  const compare = (a: SortKey, b: SortKey) => (direction === 'asc' ? 1 : -1) * compareKeys(a, b);
  const keyOf = (outfit: Outfit) => sortKeyOf(outfit, field);
  const list = [...data.outfits.values()]
    .filter((outfit) => isIn(reading, outfit))
    .sort((a, b) => compare(keyOf(a), keyOf(b)));
  const show = (rows: readonly Outfit[], ...more: unknown[]) =>
    textOf([more, rows.map((row) => [row, data.names[row.userId]])]);
  const slice = (request: KeysetPageRequest) => {
    const { after, before } = request;
    const all = list.filter(
      (outfit) =>
        (!after || compare(keyOf(outfit), after) > 0) &&
        (!before || compare(before, keyOf(outfit)) > 0),
    );
    return request.from === 'start'
      ? all.slice(0, request.limit)
      : all.slice(Math.max(0, all.length - request.limit));
  };
  const after = placeIn(ordering, reading.after);
  const before = placeIn(ordering, reading.before);
  switch (kind) {
    case 'count':
      return { shown: show([], list.length), dependencies: dependenciesOfCount(membership) };
    case 'page': {
      const rows = list.slice((page - 1) * limit, page * limit);
      const dependencies = dependenciesOfPage(membership, ordering, rows);
      return { shown: show(rows, list.length), dependencies };
    }
    case 'range': {
      const request = { ordering, after, before, limit, from };
      const rows = slice(request);
      return { shown: show(rows), dependencies: dependenciesOfRange(membership, request, rows) };
    }
    case 'beyond': {
      const key = after ?? { value: 3n, id: 3 };
      const request = beyond(ordering, key, from === 'start' ? 'before' : 'after');
      const rows = slice(request);
      const dependencies = dependenciesOfRange(membership, request, rows);
      return { shown: show([], rows.length > 0), dependencies };
    }
    case 'record': {
      const rows = list.filter(({ id }) => id === page);
      return { shown: show(rows), dependencies: dependenciesOfRecords([page], rows) };
    }
  }
}

const outfitKeys = ({ id, userId, private: hidden, created, modified }: Outfit): OutfitImage => ({
  ...{ id, userId, private: hidden, created, modified },
});
const likesKeys = ({ id, userId, private: hidden, likes }: Outfit): OutfitImage => ({
  ...{ id, userId, private: hidden, likes },
});

/** Takes a step; `tell` is called with the rows that the triggers note. */
function take(step: Step, data: Data, tell: (told: Told) => void): Data {
  if ('renamed' in step) {
    tell({ user: step.renamed });
    const names = data.names.with(step.renamed, `${data.names[step.renamed]}!`);
    return { ...data, names };
  }
  const id = 'saved' in step ? step.saved.id : step.id;
  const before = data.outfits.get(id);
  const after =
    'saved' in step ? step.saved : before && step.change && { ...before, ...step.change };
  const outfits = new Map(data.outfits);
  if (after) outfits.set(id, after);
  else outfits.delete(id);
  const note = (keysOf: (outfit: Outfit) => OutfitImage) =>
    tell({ outfit: { id, before: before && keysOf(before), after: after && keysOf(after) } });
  const isSame = (one: unknown, other: unknown) => textOf(one) === textOf(other);
  // Each table notes the rows that are other ones: the outfit without its likes, and the likes with what they copy.
  if (!isSame(before && { ...before, likes: 0 }, after && { ...after, likes: 0 })) note(outfitKeys);
  if (!isSame(before && likesKeys(before), after && likesKeys(after))) note(likesKeys);
  return { ...data, outfits };
}

/** Tells a log in an order that each number decides a bit of, in one go or one by one. */
function tellAll(log: ChangeLog, all: readonly Told[], order: readonly number[], atOnce: boolean) {
  const shuffled = all
    .map((told, index) => ({ told, place: order[index % order.length] ?? 0 }))
    .sort((a, b) => a.place - b.place)
    .map(({ told }) => told);
  for (const some of atOnce ? [shuffled] : shuffled.map((told) => [told])) {
    log.add({
      outfits: some.flatMap((told) => ('outfit' in told ? [told.outfit] : [])),
      rows: some.flatMap((told) => ('user' in told ? [{ table: 'users', key: told.user }] : [])),
      recorded: ['users'],
    });
  }
}

const transactions: fc.Arbitrary<Transaction> = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(steps) },
  { weight: 1, arbitrary: fc.array(steps, { minLength: 2, maxLength: 3 }) },
);
const starts = fc.uniqueArray(outfits, { selector: ({ id }) => id, maxLength: 9 });

describe('what was read', () => {
  test('is touched by all that makes it another, also when it was read in between', () => {
    const figures = { same: 0, touched: 0, other: 0 };
    const property = fc.property(
      starts,
      readings,
      fc.array(transactions, { maxLength: 3 }),
      fc.array(transactions, { minLength: 1, maxLength: 3 }),
      fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 12 }),
      fc.boolean(),
      (start, reading, during, later, order, atOnce) => {
        const log = new ChangeLog();
        let data: Data = {
          outfits: new Map(start.map((outfit) => [outfit.id, outfit])),
          names: ['Ann', 'Ben', 'Cem'],
        };
        const since = log.current;
        const all: Told[] = [];
        const commit = (transaction: Transaction) => {
          for (const step of transaction) data = take(step, data, (told) => all.push(told));
        };
        for (const transaction of during) commit(transaction);
        const { shown, dependencies } = read(reading, data);
        for (const transaction of later) commit(transaction);
        // A probe reports the commits between the previous probe and itself, whenever an answer was read.
        tellAll(log, all, order, atOnce);
        const isOther = read(reading, data).shown !== shown;
        const isInvalidated = log.isInvalidated(dependencies, since);
        if (isOther) expect(isInvalidated).toBe(true);
        if (during.length > 0) return;
        figures[isOther ? 'other' : isInvalidated ? 'touched' : 'same']++;
      },
    );
    fc.assert(property, { numRuns: 5_000 });
    if (process.env['SHOW_FIGURES']) console.info(figures);
    // Or else it would do to say that all is touched.
    expect(figures.same).toBeGreaterThan(figures.touched);
  });

  test('is touched by anything once its moment is forgotten, and until then as if nothing were', () => {
    const outfit = { userId: 1, private: false, likes: 1 };
    const log = new ChangeLog();
    const like = (...ids: number[]) =>
      log.add({
        outfits: ids.map((id) => ({
          id,
          before: { id, ...outfit },
          after: { id, ...outfit, likes: 2 },
        })),
        rows: [],
        recorded: ['users'],
      });
    like(1);
    const since = log.current;
    for (let id = 2; id <= 5; id++) like(id);
    expect(log.isInvalidated(dependenciesOfRecords([1], []), since)).toBe(false);
    expect(log.isInvalidated(dependenciesOfRecords([5], []), since)).toBe(true);
    for (let id = 6; id <= 8; id++) like(...Array(4_000).fill(id));
    expect(log.isInvalidated(dependenciesOfRecords([1], []), since)).toBe(true);
    expect(log.isInvalidated(dependenciesOfRecords([1], []), log.current - 1)).toBe(false);
    log.add(undefined);
    expect(log.isInvalidated(dependenciesOfRecords([1], []), log.current - 1)).toBe(true);
  });
});
