// A page of a listing as it was written, and records with equal sort values on two pages.
import { cut } from '../../errors.ts';
import type { Answer } from '../../http/client.ts';
import { orderingFields, simplifyOrdering } from '../../outfits/ordering.ts';
import { parseTimestamp } from '../../outfits/timestamps.ts';
import type { Difference } from './difference.ts';
import { type JsonArray, type JsonNode, memberOf, parseJsonTree } from './json-tree.ts';

export interface PageRecord {
  readonly id: string;
  /** The sort value, normalized: timestamps of the same moment are equal. */
  readonly key: string;
  readonly text: string;
}

export interface ListingPage {
  readonly count: number | undefined;
  /** The query of the link to the next page, with its `?`. */
  readonly next: string | undefined;
  readonly results: readonly JsonNode[];
  readonly records: readonly PageRecord[];
}

type PageAnswer = Pick<Answer, 'status' | 'body'>;

export function resultsOf(root: JsonNode | undefined): JsonArray | undefined {
  const results = memberOf(root, 'results');
  return results?.type === 'array' ? results : undefined;
}

export function idOf(record: JsonNode): string | undefined {
  const id = memberOf(record, 'id');
  return id?.type === 'number' || id?.type === 'string' ? cut(id.text) : undefined;
}

/** Parses an answer; undefined when it is no page. @param field the sort field of the records */
export function readListingPage(
  { status, body }: PageAnswer,
  field: string,
): ListingPage | undefined {
  const root = status === 200 ? parseJsonTree(body.toString())?.root : undefined;
  const results = resultsOf(root)?.items;
  if (!results) return undefined;
  const count = memberOf(root, 'count');
  return {
    count: count?.type === 'number' ? Number(count.value) : undefined,
    next: queryOf(memberOf(root, 'next')),
    results,
    records: results.flatMap((item) => {
      const id = idOf(item);
      return id === undefined ? [] : [{ id, key: keyOf(item, field), text: item.text }];
    }),
  };
}

/** Only the query of a link counts: behind a proxy a service may not know its own address. */
function queryOf(node: JsonNode | undefined): string | undefined {
  if (node?.type !== 'string') return undefined;
  const [, ...query] = String(node.value).split('#', 1)[0]?.split('?') ?? [];
  return `?${query.join('?')}`;
}

function keyOf(record: JsonNode, field: string): string {
  const node = memberOf(record, field);
  if (node?.type !== 'string') return node?.text ?? '';
  return parseTimestamp(String(node.value))?.toString() ?? node.text;
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

export function isOfRecordList({ kind, where }: Difference): boolean {
  return where === 'results' && /^(?:record-number|record-order|tie-order)$/.test(kind);
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
  return [...others, { kind: 'tie-order', where: 'results', sentence }];
}

/** Records of only one page must have the sort value of its first or last record: ties may cross the page boundary. */
function areTied(theirs: PageAnswer, ours: PageAnswer, field: string): boolean {
  const [theirRecords, ourRecords] = [theirs, ours].map(
    (page) => readListingPage(page, field)?.records ?? [],
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
