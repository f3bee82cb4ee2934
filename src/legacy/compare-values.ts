// When two links, numbers, texts or moments are the same though they are written in other ways.
import { cut } from '../errors.ts';
import { parseTimestamp } from '../outfits/timestamps.ts';
import type { JsonNode, JsonScalar } from './json-tree.ts';

/** The base addresses that count as one, such as `https://old.example.com`. */
export interface Bases {
  /** Several: whichever of them a link begins with. */
  readonly theirs: string | readonly string[];
  readonly ours: string;
}

/** All but the base must be the same letter by letter: apps keep links. `page-1`: only ours names the first page. */
export function compareLinks(
  theirs: string,
  ours: string,
  bases: Bases,
): 'same' | 'page-1' | 'other' {
  const [there, here] = [withoutBase(theirs, bases.theirs), withoutBase(ours, bases.ours)];
  if (there === here) return 'same';
  const [path, query] = here.split('?', 2);
  const others = query?.split('&').filter((part) => part !== 'page=1') ?? [];
  const withoutPage1 = others.length > 0 ? `${path}?${others.join('&')}` : path;
  return there === withoutPage1 ? 'page-1' : 'other';
}

/** What follows the base; a link with another base stays whole. */
export function withoutBase(link: string, base: Bases['theirs']): string {
  const rests = [base]
    .flat()
    .filter((start) => link.startsWith(start))
    .map((start) => link.slice(start.length));
  const rest = rests.find((text) => /^(?:[/?#]|$)/.test(text));
  return rest === undefined ? link : `<base>${rest}`;
}

export function isScalar(node: JsonNode): node is JsonScalar {
  return node.type !== 'object' && node.type !== 'array';
}

export function isText(node: JsonNode): node is JsonScalar & { readonly value: string } {
  return node.type === 'string';
}

/** Two numbers that are too large or too exact for a double are not the same for being cut alike. */
export function isSameValue(theirs: JsonScalar, ours: JsonScalar): boolean {
  if (theirs.value !== ours.value) return false;
  if (theirs.type !== 'number') return true;
  return Number.isSafeInteger(theirs.value) || Math.abs(Number(theirs.value)) < 1;
}

/** Our six digits for what the source writes with fewer, because the others are 0. */
export function isFraction(field: string, theirs: JsonScalar, ours: JsonScalar): boolean {
  if (!/^(?:created|modified)$/.test(field) || !isText(theirs) || !isText(ours)) return false;
  const moment = parseTimestamp(theirs.value);
  if (moment === undefined || moment !== parseTimestamp(ours.value)) return false;
  return isPlain(theirs) && isPlain(ours) && /\.\d{6}Z$/.test(ours.value);
}

export function isPlain({ text, value }: JsonScalar): boolean {
  return text === `"${value}"`;
}

/** Long texts are shown from where they differ, because their beginnings look the same. */
export function showBoth(theirs: string, ours: string): [string, string] {
  const shown: [string, string] = [cut(theirs), cut(ours)];
  return shown[0] === shown[1] ? fromDifference(theirs, ours) : shown;
}

export function fromDifference(theirs: string, ours: string): [string, string] {
  let start = 0;
  while (theirs[start] === ours[start] && start < theirs.length) start++;
  if (start < 60) return [cut(theirs), cut(ours)];
  const from = (text: string) => `(from character ${start}) ${cut(text.slice(start))}`;
  return [from(theirs), from(ours)];
}
