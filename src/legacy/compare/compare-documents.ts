// Compares two JSON documents of a listing; the kinds of differences are those of `difference.ts`.
import { cut } from '../../errors.ts';
import { readProperty } from '../../old-listing/page.ts';
import { parseTimestamp } from '../../outfits/timestamps.ts';
import type { Findings, Kind } from './difference.ts';

/** Base URLs that are equivalent in links, such as `https://old.example.com`. */
export interface Bases {
  /** Several: a link may begin with any of them. */
  readonly theirs: string | readonly string[];
  readonly ours: string | readonly string[];
}

interface Place {
  /** Such as `results.user.id`, without indexes, so that it is the same for all records. */
  readonly path: string;
  /** The beginning of the sentence, such as `Outfit 7: `. */
  readonly label: string;
  /** The path within the record or document: `user.id`. */
  readonly field: string;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Compares two documents whole; a list of records, in whatever envelope, record by record. */
export class DocumentComparison {
  constructor(
    private readonly findings: Findings,
    private readonly bases: Bases,
  ) {}

  compare(theirs: unknown, ours: unknown): void {
    this.#compareValues({ path: '', label: '', field: '' }, theirs, ours);
  }

  #compareValues(place: Place, theirs: unknown, ours: unknown): void {
    const { path } = place;
    if (Array.isArray(theirs) && Array.isArray(ours)) {
      // Lists beside the records have no ids.
      const [before, after] = place.label === '' ? [byId(theirs), byId(ours)] : [];
      if (before && after && theirs.length + ours.length > 0) {
        this.#compareRecords(path, before, after);
      } else if (theirs.length !== ours.length) {
        const sentence = `has ${theirs.length} items in the source, ${ours.length} here.`;
        this.#add('value', place, sentence);
      } else theirs.forEach((item, index) => void this.#compareValues(place, item, ours[index]));
    } else if (isObject(theirs) && isObject(ours)) {
      this.#compareObjects(place, theirs, ours);
    } else if (theirs !== ours) {
      const shown = `is ${showBoth(theirs, ours).join(' in the source, ')} here.`;
      if (isAddress(place, theirs, ours)) {
        const found = compareLinks(theirs, ours, this.bases);
        if (found === 'page-1' && /prev/.test(path)) this.#add('previous-page-1', place, shown);
        else if (found !== 'same') this.#add('value', place, shown);
      } else this.#add(isFraction(place.field, theirs, ours) ? 'fraction' : 'value', place, shown);
    } else if (isAddress(place, theirs, ours)) {
      // The same link leads to one of both services: right only where both have one base.
      const isSame = compareLinks(theirs, ours, this.bases) === 'same';
      if (!isSame) this.#add('value', place, `is ${show(theirs)} in the source, and here too.`);
    }
  }

  #compareObjects(place: Place, theirs: JsonObject, ours: JsonObject): void {
    for (const [key, value] of Object.entries(theirs)) {
      const inner = within(place, key);
      if (Object.hasOwn(ours, key)) this.#compareValues(inner, value, ours[key]);
      else this.#add('value', inner, `is ${show(value)} in the source, missing here.`);
    }
    for (const [key, value] of Object.entries(ours)) {
      if (Object.hasOwn(theirs, key)) continue;
      this.#add('value', within(place, key), `is missing in the source, ${show(value)} here.`);
    }
    const moved = firstMoved(Object.keys(theirs), Object.keys(ours));
    if (!moved) return;
    const [a, b] = moved.map((key) => cut(JSON.stringify(key)));
    const sentence = `has its keys in another order: ${a} comes first in the source, ${b} here.`;
    this.#add('bytes-only', place, sentence);
  }

  /** Compares records with the same id, and reports missing, additional and reordered ones. */
  #compareRecords(
    path: string,
    theirs: ReadonlyMap<string, unknown>,
    ours: ReadonlyMap<string, unknown>,
  ): void {
    const add = (where: string, sentence: string) => this.findings.add('records', where, sentence);
    for (const [id, record] of theirs) {
      const place = { path, label: `Outfit ${id}: `, field: '' };
      if (ours.has(id)) this.#compareValues(place, record, ours.get(id));
      else add('missing', `Outfit ${id} is missing here.`);
    }
    for (const id of ours.keys()) {
      if (!theirs.has(id)) add('additional', `Outfit ${id} is not in the source.`);
    }
    const moved = firstMoved([...theirs.keys()], [...ours.keys()]);
    if (moved) add('order', `Outfit ${moved[0]} stands where outfit ${moved[1]} stands here.`);
  }

  #add(kind: Kind, { path, label, field }: Place, clause: string): void {
    this.findings.add(kind, path || undefined, `${label}${field || 'the document'} ${clause}`);
  }
}

function within(place: Place, key: string): Place {
  const name = /^[\w-]{1,60}$/.test(key) ? key : cut(JSON.stringify(key));
  const join = (before: string) => (before ? `${before}.${name}` : name).slice(0, 200);
  return { path: join(place.path), label: place.label, field: join(place.field) };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A link of a page, by its name: a picture at the base of one service is another picture. */
function isAddress({ path, label }: Place, theirs: unknown, ours: unknown): boolean {
  const isNamed = label === '' && /(?:^|\.)(?:next|prev|first|last|self|links)\w*$/i.test(path);
  return isNamed && typeof theirs === 'string' && typeof ours === 'string';
}

const show = (value: unknown) => cut(JSON.stringify(value));

/** The first of the common items that stand at another place, on both sides. */
function firstMoved(theirs: readonly string[], ours: readonly string[]): string[] | undefined {
  const [inTheirs, inOurs] = [new Set(theirs), new Set(ours)];
  const common = theirs.filter((item) => inOurs.has(item));
  const others = ours.filter((item) => inTheirs.has(item));
  const first = common.findIndex((item, index) => item !== others[index]);
  return first === -1 ? undefined : [common[first] ?? '', others[first] ?? ''];
}

/** Undefined unless the ids are unique. */
function byId(items: readonly unknown[]): Map<string, unknown> | undefined {
  const records = new Map<string, unknown>();
  for (const item of items) {
    const id = readProperty(item, 'id');
    const name = cut(JSON.stringify(id) ?? '');
    if (!/^(?:string|number)$/.test(typeof id) || records.has(name)) return undefined;
    records.set(name, item);
  }
  return records;
}

/** Apart from the base, links must be identical: apps store them. `page-1`: only ours has `page=1`. */
function compareLinks(theirs: unknown, ours: unknown, bases: Bases): 'same' | 'page-1' | 'other' {
  if (typeof theirs !== 'string' || typeof ours !== 'string') return 'other';
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

/** The same timestamp, with six zeros here and without a fraction in the source, as Python writes it. */
function isFraction(field: string, theirs: unknown, ours: unknown): boolean {
  if (!/^(?:created|modified)$/.test(field)) return false;
  if (typeof theirs !== 'string' || typeof ours !== 'string') return false;
  return (
    parseTimestamp(theirs) !== undefined &&
    !theirs.includes('.') &&
    `${theirs.slice(0, -1)}.000000Z` === ours
  );
}

/** Long texts are shown from their first difference. */
export function showBoth(theirs: unknown, ours: unknown): [string, string] {
  const [a, b] = [JSON.stringify(theirs), JSON.stringify(ours)];
  if (cut(a) !== cut(b)) return [cut(a), cut(b)];
  let start = 0;
  while (a[start] === b[start] && start < a.length) start++;
  const from = (text: string) => `(from character ${start}) ${cut(text.slice(start))}`;
  return [from(a), from(b)];
}
