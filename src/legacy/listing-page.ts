// A page of a listing, as far as bringing two listings together needs it.
import { parseTimestamp } from '../outfits/timestamps.ts';
import { idOf } from './compare-records.ts';
import { type JsonNode, membersOf, parseJsonTree } from './json-tree.ts';

export interface PageRecord {
  readonly id: string;
  /** What it is sorted by; the same for moments that are written in two ways. */
  readonly key: string;
  /** The record as it was written. */
  readonly text: string;
}

export interface ListingPage {
  readonly count: number | undefined;
  /** The query of the link to the next page, with its `?`. */
  readonly next: string | undefined;
  readonly records: readonly PageRecord[];
}

/** Reads an answer; undefined when it is no page. @param field what the records are sorted by */
export function readListingPage(
  { status, body }: { readonly status: number; readonly body: Buffer },
  field: string,
): ListingPage | undefined {
  const root = status === 200 ? parseJsonTree(body.toString())?.root : undefined;
  if (root?.type !== 'object') return undefined;
  const members = membersOf(root);
  const results = members.get('results')?.value;
  if (results?.type !== 'array') return undefined;
  return {
    count: numberOf(members.get('count')?.value),
    next: queryOf(members.get('next')?.value),
    records: results.items.flatMap((item) => {
      const id = idOf(item);
      return id === undefined ? [] : [{ id, key: keyOf(item, field), text: item.text }];
    }),
  };
}

function numberOf(node: JsonNode | undefined): number | undefined {
  return node?.type === 'number' ? Number(node.value) : undefined;
}

/** Behind a proxy a service may not know its own address, so only the query of a link counts. */
function queryOf(node: JsonNode | undefined): string | undefined {
  if (node?.type !== 'string') return undefined;
  const [, ...query] = String(node.value).split('#', 1)[0]?.split('?') ?? [];
  return `?${query.join('?')}`;
}

function keyOf(record: JsonNode, field: string): string {
  const node = record.type === 'object' ? membersOf(record).get(field)?.value : undefined;
  if (node?.type !== 'string') return node?.text ?? '';
  return parseTimestamp(String(node.value))?.toString() ?? node.text;
}
