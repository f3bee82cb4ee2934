// A page of a listing, and records with equal sort values on two pages.
import type { Answer } from '../../http/client.ts';
import { parseJson, queryOf, readEnvelope, readProperty } from '../../old-listing/page.ts';
import { orderingFields, simplifyOrdering } from '../../outfits/ordering.ts';
import { parseTimestamp } from '../../outfits/timestamps.ts';
import type { Difference } from './difference.ts';

export interface PageRecord {
  readonly id: number;
  /** The sort value: timestamps of the same moment are equal. */
  readonly key: bigint | string;
  readonly value: unknown;
}

export interface ListingPage {
  readonly count: number | undefined;
  /** The query of the link to the next page, with its `?`; empty without parameters. */
  readonly next: string | undefined;
  readonly records: readonly PageRecord[];
}

type PageAnswer = Pick<Answer, 'status' | 'body'>;

/** Parses an answer; undefined when it is no page. @param field the sort field of the records */
export function readListingPage(
  { status, body }: PageAnswer,
  field: string,
): ListingPage | undefined {
  const page = status === 200 ? readEnvelope(parseOrUndefined(body.toString())) : undefined;
  if (!page) return undefined;
  return {
    count: page.count,
    next: queryOf(page.next),
    records: page.results.flatMap((value) => {
      const id = readProperty(value, 'id');
      return typeof id === 'number' ? [{ id, key: keyOf(value, field), value }] : [];
    }),
  };
}

function parseOrUndefined(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function keyOf(record: unknown, field: string): bigint | string {
  const value = readProperty(record, field);
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  return (typeof value === 'string' && parseTimestamp(value)) || JSON.stringify(value ?? null);
}

/** Empty: the default. */
export function readOrdering(target: string): string {
  const query = target.split('?').slice(1).join('?');
  return new URLSearchParams(query).getAll('ordering').at(-1) ?? '';
}

/** The field of a record that an ordering of the contract sorts by; undefined also for several that mean none. */
export function fieldOf(ordering: string): string | undefined {
  const name = simplifyOrdering(ordering)?.replace(/^-/, '') ?? '';
  return Object.hasOwn(orderingFields, name) ? Reflect.get(orderingFields, name) : undefined;
}

export function isOfRecordList({ kind, where = '' }: Difference): boolean {
  return (
    kind === 'tie-order' || (kind === 'records' && /^(?:missing|additional|order)$/.test(where))
  );
}

/** Removes differences of records and their order, which are compared over the whole listing. */
export function withoutRecordLists(differences: readonly Difference[]): Difference[] {
  return differences.filter((difference) => !isOfRecordList(difference));
}

/** Replaces differences by `tie-order` if ties explain them all: a source may order equal sort values in any way. */
export function nameTies(
  target: string,
  theirs: PageAnswer,
  ours: PageAnswer,
  differences: readonly Difference[],
): Difference[] {
  const others = withoutRecordLists(differences);
  const ordering = readOrdering(target) || 'created';
  const field = fieldOf(ordering) ?? ordering.replace(/^-|,.*/g, '');
  if (others.length === differences.length || !areTied(theirs, ours, field)) {
    return [...differences];
  }
  const sentence =
    'Records with the same value to sort by come in another order among themselves in the source.';
  return [...others, { kind: 'tie-order', sentence }];
}

/** Records of only one page must have the sort value of its first or last record: ties may cross the page boundary. */
function areTied(theirs: PageAnswer, ours: PageAnswer, field: string): boolean {
  const [theirRecords, ourRecords] = [theirs, ours].map(
    (page) => readListingPage(page, field)?.records,
  );
  if (!theirRecords || !ourRecords || theirRecords.length !== ourRecords.length) return false;
  if (theirRecords.some(({ key }, index) => key !== ourRecords[index]?.key)) return false;
  const [first, last] = [theirRecords[0]?.key, theirRecords.at(-1)?.key];
  const keys = new Map(theirRecords.map(({ id, key }) => [id, key]));
  return ourRecords.every(({ id, key }) => {
    const other = keys.get(id);
    return other === undefined ? key === first || key === last : other === key;
  });
}

/** What of an order is wrong on a page: two records by their ids, the first of which must come behind the other. */
interface PageOrder {
  readonly misplaced: readonly [number, number] | undefined;
  /** Whether records with the same value come in another order than that of their ids. */
  readonly isTieOpen: boolean;
}

/** @param name the ordering, such as `-like_count`; empty: newest first */
export function checkOrder(records: readonly PageRecord[], name: string): PageOrder {
  const isDescending = name === '' || name.startsWith('-');
  let isTieOpen = false;
  for (const [index, record] of records.entries()) {
    const before = records[index - 1];
    if (!before) continue;
    const [first, second] = isDescending ? [record, before] : [before, record];
    if (typeof first.key !== 'bigint' || typeof second.key !== 'bigint') continue;
    if (first.key > second.key) return { misplaced: [before.id, record.id], isTieOpen };
    if (first.key === second.key) isTieOpen ||= first.id > second.id;
  }
  return { misplaced: undefined, isTieOpen };
}
