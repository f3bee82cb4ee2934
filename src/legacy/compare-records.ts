// The records of two pages, brought together by their ids.
import type { Findings } from './difference.ts';
import type { JsonArray, JsonNode } from './json-tree.ts';
import { idOf } from './listing-page.ts';

type CompareRecord = (label: string, theirs: JsonNode, ours: JsonNode) => void;

const path = 'results';

/** Compares each record with the one of the same id, and says which are missing or elsewhere. */
export function compareRecordLists(
  theirs: JsonArray,
  ours: JsonArray,
  compareRecord: CompareRecord,
  findings: Findings,
): void {
  const [there, here] = [byId(theirs), byId(ours)];
  if (!there || !here) {
    compareByPlace(theirs, ours, compareRecord, findings);
    return;
  }
  for (const [id, record] of there) {
    const other = here.get(id);
    if (other) compareRecord(`Outfit ${id}: `, record, other);
    else findings.add('record-number', path, `Outfit ${id} is missing here.`);
  }
  for (const id of here.keys()) {
    if (!there.has(id)) findings.add('record-number', path, `Outfit ${id} is not in the source.`);
  }
  const common = [...there.keys()].filter((id) => here.has(id));
  const order = [...here.keys()].filter((id) => there.has(id));
  const first = common.findIndex((id, index) => id !== order[index]);
  if (first === -1) return;
  const sentence = `Outfit ${common[first]} stands where outfit ${order[first]} stands here.`;
  findings.add('record-order', path, sentence);
}

/** Undefined unless each record has an id of its own. */
function byId({ items }: JsonArray): Map<string, JsonNode> | undefined {
  const records = new Map<string, JsonNode>();
  for (const item of items) {
    const id = idOf(item);
    if (id === undefined || records.has(id)) return undefined;
    records.set(id, item);
  }
  return records;
}

function compareByPlace(
  theirs: JsonArray,
  ours: JsonArray,
  compareRecord: CompareRecord,
  findings: Findings,
): void {
  if (theirs.items.length !== ours.items.length) {
    const sentence = `The page has ${theirs.items.length} records in the source, ${ours.items.length} here.`;
    findings.add('record-number', path, sentence);
  }
  for (const [index, record] of theirs.items.entries()) {
    const other = ours.items[index];
    if (other) compareRecord(`Record ${index + 1} of the page: `, record, other);
  }
}
