// What ends an answer: never too little, whatever changes, and seldom too much. Lists are played through in
// memory, so that there are more of them than any database could read.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChangeLog } from '../src/database/change-log.ts';
import { changeOf, type MadeOf, type OutfitKeys } from '../src/database/changes.ts';
import type { OutfitFilter } from '../src/outfits/filter.ts';
import { beyond, type KeysetPageRequest } from '../src/outfits/keyset-page.ts';
import {
  madeOfCount,
  madeOfPage,
  madeOfRange,
  madeOfRecords,
  membersOf,
  membersOfUser,
} from '../src/outfits/made-of.ts';
import { compareKeys, type Ordering, type SortKey, sortKeyOf } from '../src/outfits/ordering.ts';
import type { Visibility } from '../src/outfits/visibility.ts';
import { amount } from './lane.ts';

interface Outfit extends OutfitKeys {
  readonly quality: number;
  readonly title: string;
}

interface Reading {
  readonly visibility: Visibility;
  readonly filter: OutfitFilter;
  /** Whose outfits; undefined: those of everyone. */
  readonly owner: number | undefined;
  readonly ordering: Ordering;
  readonly kind: 'count' | 'page' | 'range' | 'beyond' | 'record';
  readonly page: number;
  readonly limit: number;
  readonly from: 'start' | 'end';
  readonly after: SortKey | undefined;
  readonly before: SortKey | undefined;
}

/** The outfits of a moment, by their ids, and the names of users. */
interface Data {
  readonly outfits: ReadonlyMap<number, Outfit>;
  readonly names: readonly string[];
}

type Step =
  | { readonly kind: 'save'; readonly outfit: Outfit }
  | { readonly kind: 'like' | 'delete' | 'retitle'; readonly id: number }
  | { readonly kind: 'rename'; readonly user: number };

const small = fc.integer({ min: 1, max: 4 });
const moment = fc.bigInt({ min: 1n, max: 5n });
const outfits: fc.Arbitrary<Outfit> = fc.record({
  id: fc.integer({ min: 1, max: 9 }),
  userId: fc.integer({ min: 0, max: 2 }),
  private: fc.boolean(),
  likes: small,
  created: moment,
  modified: moment,
  quality: small,
  title: fc.constantFrom('a', 'b'),
});
const keys: fc.Arbitrary<SortKey | undefined> = fc.option(
  fc.record({ value: moment, id: fc.integer({ min: 1, max: 9 }) }),
  { nil: undefined },
);
const filters: fc.Arbitrary<OutfitFilter> = fc.oneof(
  fc.constant({}),
  fc.record({ userIds: fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 2 }) }),
  fc.record({ ids: fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }) }),
  fc.record({ createdFrom: moment, createdBefore: fc.option(moment, { nil: undefined }) }),
  fc.record({ likesFrom: small, likesBelow: fc.option(small, { nil: undefined }) }),
  fc.record({ private: fc.boolean() }),
  fc.record({ quality: fc.array(small, { minLength: 1, maxLength: 3 }) }),
  fc.record({ quality: fc.constant([1, 2]), likesFrom: small }),
);
const readings: fc.Arbitrary<Reading> = fc.record({
  visibility: fc.constantFrom<Visibility>({ private: 'all' }, { private: 'none' }),
  filter: filters,
  owner: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
  ordering: fc.record({
    field: fc.constantFrom(
      'created' as const,
      'id' as const,
      'likes' as const,
      'modified' as const,
    ),
    direction: fc.constantFrom('asc' as const, 'desc' as const),
  }),
  kind: fc.constantFrom('count', 'page', 'range', 'beyond', 'record'),
  page: fc.integer({ min: 1, max: 4 }),
  limit: fc.integer({ min: 1, max: 3 }),
  from: fc.constantFrom('start', 'end'),
  after: keys,
  before: keys,
});
const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('save' as const), outfit: outfits }),
  fc.record({
    kind: fc.constantFrom('like' as const, 'delete' as const, 'retitle' as const),
    id: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({ kind: fc.constant('rename' as const), user: fc.integer({ min: 0, max: 2 }) }),
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

/** Reads as the service does, and gives what is shown and what that was made of. */
function read(reading: Reading, data: Data): { shown: string; madeOf: MadeOf | undefined } {
  const { visibility, filter, owner, ordering, kind, page, limit, from } = reading;
  const { field, direction } = ordering;
  const members =
    owner === undefined ? membersOf(visibility, filter) : membersOfUser(owner, visibility, filter);
  const compare = (a: SortKey, b: SortKey) => (direction === 'asc' ? 1 : -1) * compareKeys(a, b);
  const keyOf = (outfit: Outfit) => sortKeyOf(outfit, field);
  const list = [...data.outfits.values()]
    .filter((outfit) => isIn(reading, outfit))
    .sort((a, b) => compare(keyOf(a), keyOf(b)));
  const show = (rows: readonly Outfit[], ...more: unknown[]) =>
    JSON.stringify([more, rows.map((row) => [row, data.names[row.userId]])], (_name, value) =>
      typeof value === 'bigint' ? `${value}n` : value,
    );
  const slice = (request: KeysetPageRequest) => {
    const { after, before } = request;
    const all = list.filter(
      (outfit) =>
        (!after || compare(keyOf(outfit), after) > 0) &&
        (!before || compare(keyOf(outfit), before) < 0),
    );
    return request.from === 'start'
      ? all.slice(0, request.limit)
      : all.slice(Math.max(0, all.length - request.limit));
  };
  const after = placeIn(ordering, reading.after);
  const before = placeIn(ordering, reading.before);
  switch (kind) {
    case 'count':
      return { shown: show([], list.length), madeOf: madeOfCount(members) };
    case 'page': {
      const rows = list.slice((page - 1) * limit, page * limit);
      return { shown: show(rows, list.length), madeOf: madeOfPage(members, ordering, rows) };
    }
    case 'range': {
      const request = { ordering, after, before, limit, from };
      const rows = slice(request);
      return { shown: show(rows), madeOf: madeOfRange(members, request, rows) };
    }
    case 'beyond': {
      const key = after ?? { value: 3n, id: 3 };
      const request = beyond(ordering, key, from === 'start' ? 'before' : 'after');
      const [witness] = slice(request);
      const madeOf = witness ? madeOfRecords([witness.id], []) : madeOfRange(members, request, []);
      return { shown: show([], witness !== undefined), madeOf };
    }
    case 'record': {
      const rows = list.filter(({ id }) => id === page);
      return { shown: show(rows), madeOf: madeOfRecords([page], rows) };
    }
  }
}

/** Takes a step, and tells the log of it. */
function take(step: Step, data: Data, log: ChangeLog): Data {
  if (step.kind === 'rename') {
    log.add({ outfits: [], users: [step.user] });
    const names = data.names.with(step.user, `${data.names[step.user]}!`);
    return { ...data, names };
  }
  const id = step.kind === 'save' ? step.outfit.id : step.id;
  const before = data.outfits.get(id);
  const outfits = new Map(data.outfits);
  if (step.kind === 'save') outfits.set(id, step.outfit);
  else if (step.kind === 'delete') outfits.delete(id);
  else if (before && step.kind === 'like') outfits.set(id, { ...before, likes: before.likes + 1 });
  else if (before) {
    outfits.set(id, { ...before, title: `${before.title}!`, quality: (before.quality % 4) + 1 });
  }
  const after = outfits.get(id);
  if (before || after) log.add({ outfits: [changeOf(id, before, after)], users: [] });
  return { ...data, outfits };
}

const starts = fc.uniqueArray(outfits, { selector: ({ id }) => id, maxLength: 9 });

describe('what was read', () => {
  test('is touched by all that makes it another, also when it was read in between', () => {
    const figures = { same: 0, touched: 0, other: 0 };
    const property = fc.property(
      starts,
      readings,
      fc.array(steps, { maxLength: 3 }),
      fc.array(steps, { minLength: 1, maxLength: 3 }),
      (start, reading, during, later) => {
        const log = new ChangeLog();
        let data: Data = {
          outfits: new Map(start.map((outfit) => [outfit.id, outfit])),
          names: ['Ann', 'Ben', 'Cem'],
        };
        const since = log.now;
        for (const step of during) data = take(step, data, log);
        const { shown, madeOf } = read(reading, data);
        const untouched = during.length === 0;
        for (const step of later) data = take(step, data, log);
        const isOther = read(reading, data).shown !== shown;
        const isTouched = log.isTouched(madeOf, since);
        if (isOther) expect(isTouched).toBe(true);
        if (!untouched) return;
        figures[isOther ? 'other' : isTouched ? 'touched' : 'same']++;
      },
    );
    fc.assert(property, { numRuns: amount(10_000, 100_000) });
    if (process.env['SHOW_FIGURES']) console.info(figures);
    // Or else it would do to say that all is touched.
    expect(figures.same).toBeGreaterThan(figures.touched);
  });

  test('is touched by anything once its moment is forgotten, and until then as if nothing were', () => {
    const outfit = { id: 1, userId: 1, private: false, likes: 1, created: 1n, modified: 1n };
    const log = new ChangeLog(10);
    const like = (id: number) =>
      log.add({
        outfits: [changeOf(id, { ...outfit, id }, { ...outfit, id, likes: 2 })],
        users: [],
      });
    like(1);
    const since = log.now;
    for (let id = 2; id <= 5; id++) like(id);
    expect(log.isTouched(madeOfRecords([1], []), since)).toBe(false);
    expect(log.isTouched(madeOfRecords([5], []), since)).toBe(true);
    for (let id = 6; id <= 30; id++) like(id);
    expect(log.isTouched(madeOfRecords([1], []), since)).toBe(true);
    expect(log.isTouched(madeOfRecords([1], []), log.now - 1)).toBe(false);
    log.add(undefined);
    expect(log.isTouched(madeOfRecords([1], []), log.now - 1)).toBe(true);
  });
});
