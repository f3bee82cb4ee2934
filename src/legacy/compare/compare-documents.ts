// Compares two JSON documents of a listing; the kinds of differences are those of `difference.ts`.
import { cut } from '../../errors.ts';
import { parseTimestamp } from '../../outfits/timestamps.ts';
import type { Findings, Kind } from './difference.ts';
import type { JsonArray, JsonNode, JsonObject, JsonScalar } from './json-tree.ts';
import { idOf, resultsOf } from './listing-page.ts';

/** Base URLs that are equivalent in links, such as `https://old.example.com`. */
export interface Bases {
  /** Several: a link may begin with any of them. */
  readonly theirs: string | readonly string[];
  readonly ours: string;
}

interface Place {
  /** Such as `results.user.id`, without indexes, so that it is the same for all records. */
  readonly path: string;
  /** The beginning of the sentence, such as `Outfit 7: `. */
  readonly label: string;
  /** The path within the record or document: `user.id`. */
  readonly field: string;
}

const rootPlace: Place = { path: '', label: '', field: '' };

/** The envelope of a page; its kinds of differences have the same names. */
const envelope = ['count', 'next', 'previous'] as const;

/** Compares two documents whole; a page of a listing record by record. */
export class DocumentComparison {
  #isPage = false;

  constructor(
    private readonly findings: Findings,
    private readonly bases: Bases,
  ) {}

  compare(theirs: JsonNode, ours: JsonNode): void {
    this.#isPage = isPage(theirs) || isPage(ours);
    this.#compareNodes(rootPlace, theirs, ours);
  }

  #compareNodes(place: Place, theirs: JsonNode, ours: JsonNode): void {
    if (theirs.type === 'object' && ours.type === 'object') {
      this.#compareObjects(place, theirs, ours);
    } else if (theirs.type === 'array' && ours.type === 'array') {
      this.#compareArrays(place, theirs, ours);
    } else if (this.#isPage && (place.path === 'next' || place.path === 'previous')) {
      this.#compareLinks(place.path, theirs, ours);
    } else if (theirs.text !== ours.text) {
      this.#compareScalars(place, theirs, ours);
    }
  }

  #compareObjects(
    place: Place,
    { members: theirMembers, ...theirs }: JsonObject,
    ours: JsonObject,
  ): void {
    const ourMembers = ours.members;
    for (const [key, { value, keyText }] of theirMembers) {
      const inner = this.#within(place, key);
      const other = ourMembers.get(key);
      if (!other) {
        const sentence = `${inner.label}${inner.field} is ${show(value)} in the source, missing here.`;
        this.#add(inner, 'missing-field', sentence);
        continue;
      }
      this.#compareNodes(inner, value, other.value);
      if (other.keyText !== keyText) this.#spelling(place, keyText, other.keyText);
    }
    for (const [key, { value }] of ourMembers) {
      if (theirMembers.has(key)) continue;
      const inner = this.#within(place, key);
      const sentence = `${inner.label}${inner.field} is missing in the source, ${show(value)} here.`;
      this.#add(inner, 'extra-field', sentence);
    }
    const name = place.field || (place.path === 'results' ? 'the record' : 'the document');
    const [theirKeys, ourKeys] = commonKeys(theirMembers, ourMembers);
    const first = theirKeys.findIndex((key, index) => key !== ourKeys[index]);
    if (first !== -1) {
      const [a, b] = [JSON.stringify(theirKeys[first]), JSON.stringify(ourKeys[first])].map(cut);
      const sentence = `${place.label}the keys of ${name} are in another order: ${a} comes first in the source, ${b} here.`;
      this.findings.add('key-order', place.path || undefined, sentence);
    }
    if (theirs.repeated !== ours.repeated) {
      const sentence = `${place.label}${name} has a key twice on one side.`;
      this.findings.add('bytes-only', place.path || undefined, sentence);
    }
  }

  #compareArrays(place: Place, theirs: JsonArray, ours: JsonArray): void {
    if (this.#isPage && place.path === 'results') {
      this.#compareRecordLists(theirs, ours);
      return;
    }
    if (theirs.items.length !== ours.items.length) {
      const [theirLength, ourLength] = [theirs.items.length, ours.items.length];
      const sentence = `${place.label}${nameOf(place)} has ${theirLength} items in the source, ${ourLength} here.`;
      this.#add(place, 'value', sentence);
      return;
    }
    for (const [index, item] of theirs.items.entries()) {
      this.#compareNodes(place, item, ours.items[index] as JsonNode);
    }
  }

  /** Compares records with the same id, and reports missing, additional and reordered ones. */
  #compareRecordLists(theirs: JsonArray, ours: JsonArray): void {
    const add = (kind: Kind, sentence: string) => this.findings.add(kind, 'results', sentence);
    const compareRecord = (label: string, theirRecord: JsonNode, ourRecord: JsonNode) =>
      this.#compareNodes({ path: 'results', label, field: '' }, theirRecord, ourRecord);
    const [theirRecords, ourRecords] = [byId(theirs), byId(ours)];
    if (!theirRecords || !ourRecords) {
      const [before, after] = [theirs.items.length, ours.items.length];
      if (before !== after) {
        add('record-number', `The page has ${before} records in the source, ${after} here.`);
      }
      for (const [index, record] of theirs.items.entries()) {
        const other = ours.items[index];
        if (other) compareRecord(`Record ${index + 1} of the page: `, record, other);
      }
      return;
    }
    for (const [id, record] of theirRecords) {
      const other = ourRecords.get(id);
      if (other) compareRecord(`Outfit ${id}: `, record, other);
      else add('record-number', `Outfit ${id} is missing here.`);
    }
    for (const id of ourRecords.keys()) {
      if (!theirRecords.has(id)) add('record-number', `Outfit ${id} is not in the source.`);
    }
    const [common, order] = commonKeys(theirRecords, ourRecords);
    const first = common.findIndex((id, index) => id !== order[index]);
    if (first === -1) return;
    add('record-order', `Outfit ${common[first]} stands where outfit ${order[first]} stands here.`);
  }

  #compareScalars(place: Place, theirs: JsonNode, ours: JsonNode): void {
    const [theirText, ourText] = showBoth(theirs.text, ours.text);
    const sentence = `${place.label}${nameOf(place)} is ${theirText} in the source, ${ourText} here.`;
    if (!isScalar(theirs) || !isScalar(ours)) this.#add(place, 'value', sentence);
    else if (isSameValue(theirs, ours)) this.#spelling(place, theirs.text, ours.text);
    else if (isFraction(place.field, theirs, ours)) {
      this.findings.add('fraction', place.path, sentence);
    } else this.#add(place, 'value', sentence);
  }

  #compareLinks(name: 'next' | 'previous', theirs: JsonNode, ours: JsonNode): void {
    const kind =
      isText(theirs) && isText(ours) && compareLinks(theirs.value, ours.value, this.bases);
    if (kind === 'page-1' && name === 'previous') {
      const sentence = `previous is ${show(theirs)} in the source, ${show(ours)} here.`;
      this.findings.add('previous-page-1', 'previous', sentence);
    } else if (theirs.text === 'null' ? ours.text !== 'null' : kind !== 'same') {
      const [theirText, ourText] = showBoth(theirs.text, ours.text);
      this.findings.add(name, name, `${name} is ${theirText} in the source, ${ourText} here.`);
    } else if (isText(theirs) && isText(ours) && isPlain(theirs) !== isPlain(ours)) {
      this.#spelling({ path: name, label: '', field: name }, theirs.text, ours.text);
    }
  }

  #spelling(place: Place, theirs: string, ours: string): void {
    const [theirText, ourText] = fromDifference(theirs, ours);
    const sentence = `${place.label}${nameOf(place)} is written ${theirText} in the source, ${ourText} here.`;
    this.findings.add('bytes-only', place.path || undefined, sentence);
  }

  /** A difference in the envelope of a page has the kind of its field. */
  #add(place: Place, kind: Kind, sentence: string): void {
    const own = this.#isPage ? envelope.find((name) => name === place.path) : undefined;
    this.findings.add(own ?? kind, place.path || undefined, sentence);
  }

  #within(place: Place, key: string): Place {
    const name = /^[\w-]{1,60}$/.test(key) ? key : cut(JSON.stringify(key));
    const join = (before: string) => (before ? `${before}.${name}` : name).slice(0, 200);
    return { path: join(place.path), label: place.label, field: join(place.field) };
  }
}

function isPage(node: JsonNode): boolean {
  if (node.type !== 'object' || !resultsOf(node)) return false;
  return node.members.has('count') || node.members.has('next');
}

const nameOf = ({ field }: Place) => field || 'the document';

const show = ({ text }: JsonNode) => cut(text);

/** The common keys, in the order of each. */
function commonKeys(
  theirs: ReadonlyMap<string, unknown>,
  ours: ReadonlyMap<string, unknown>,
): [string[], string[]] {
  return [
    [...theirs.keys()].filter((key) => ours.has(key)),
    [...ours.keys()].filter((key) => theirs.has(key)),
  ];
}

/** Undefined unless the ids are unique. */
function byId({ items }: JsonArray): Map<string, JsonNode> | undefined {
  const records = new Map<string, JsonNode>();
  for (const item of items) {
    const id = idOf(item);
    if (id === undefined || records.has(id)) return undefined;
    records.set(id, item);
  }
  return records;
}

/** Apart from the base, links must be identical: apps store them. `page-1`: only ours has `page=1`. */
function compareLinks(theirs: string, ours: string, bases: Bases): 'same' | 'page-1' | 'other' {
  const [theirRest, ourRest] = [withoutBase(theirs, bases.theirs), withoutBase(ours, bases.ours)];
  if (theirRest === ourRest) return 'same';
  const [path, query] = ourRest.split('?', 2);
  const others = query?.split('&').filter((part) => part !== 'page=1') ?? [];
  const withoutPage1 = others.length > 0 ? `${path}?${others.join('&')}` : path;
  return theirRest === withoutPage1 ? 'page-1' : 'other';
}

/** Replaces the base by a placeholder; a link with another base is unchanged. */
export function withoutBase(link: string, base: Bases['theirs']): string {
  const rests = [base]
    .flat()
    .filter((start) => link.startsWith(start))
    .map((start) => link.slice(start.length));
  const rest = rests.find((text) => /^(?:[/?#]|$)/.test(text));
  return rest === undefined ? link : `<base>${rest}`;
}

function isScalar(node: JsonNode): node is JsonScalar {
  return node.type !== 'object' && node.type !== 'array';
}

function isText(node: JsonNode): node is JsonScalar & { readonly value: string } {
  return node.type === 'string';
}

/** Large or precise numbers may be rounded to the same double, and count as different. */
function isSameValue(theirs: JsonScalar, ours: JsonScalar): boolean {
  if (theirs.value !== ours.value) return false;
  if (theirs.type !== 'number') return true;
  return Number.isSafeInteger(theirs.value) || Math.abs(Number(theirs.value)) < 1;
}

/** The same timestamp, with six zeros here and without a fraction in the source, as Python writes it. */
function isFraction(field: string, theirs: JsonScalar, ours: JsonScalar): boolean {
  if (!/^(?:created|modified)$/.test(field) || !isText(theirs) || !isText(ours)) return false;
  const moment = parseTimestamp(theirs.value);
  if (moment === undefined || moment !== parseTimestamp(ours.value)) return false;
  return isPlain(theirs) && isPlain(ours) && `${theirs.value.slice(0, -1)}.000000Z` === ours.value;
}

function isPlain({ text, value }: JsonScalar): boolean {
  return text === `"${value}"`;
}

/** Long texts are shown from their first difference. */
function showBoth(theirs: string, ours: string): [string, string] {
  const shown: [string, string] = [cut(theirs), cut(ours)];
  return shown[0] === shown[1] ? fromDifference(theirs, ours) : shown;
}

function fromDifference(theirs: string, ours: string): [string, string] {
  let start = 0;
  while (theirs[start] === ours[start] && start < theirs.length) start++;
  if (start < 60) return [cut(theirs), cut(ours)];
  const from = (text: string) => `(from character ${start}) ${cut(text.slice(start))}`;
  return [from(theirs), from(ours)];
}
