// Compares an answer of the old service with ours: verify, replay and the modes with comparisons use it.
import { isUtf8 } from 'node:buffer';
import { cut, messageOf } from '../../errors.ts';
import type { Answer } from '../../http/client.ts';
import { encodeJson, isDeeper } from '../../http/representation.ts';
import { parseJson, readProperty } from '../../old-listing/page.ts';
import { simplifyOrdering } from '../../outfits/ordering.ts';
import { type Bases, DocumentComparison, showBoth } from './compare-documents.ts';
import { type ComparedTarget, compareHeaders, comparePreflights } from './compare-headers.ts';
import { type Difference, Findings } from './difference.ts';
import { checkOrder, fieldOf, nameTies, readListingPage, readOrdering } from './listing-page.ts';

/** With different statuses nothing else is compared; of OPTIONS only the keys, since the texts describe a service. */
export function compareAnswers(
  request: ComparedTarget,
  theirs: Answer,
  ours: Answer,
  bases: Bases,
): Difference[] {
  const findings = new Findings();
  const ordering = readOrdering(request.target);
  if (theirs.undecodable ?? ours.undecodable) {
    const side = theirs.undecodable === undefined ? 'here' : 'in the source';
    const sentence = `The body cannot be decompressed ${side}: ${theirs.undecodable ?? ours.undecodable}.`;
    findings.add('body', 'compression', sentence);
  } else if (request.headers?.['access-control-request-method'] !== undefined) {
    comparePreflights(request.headers, theirs, ours, findings);
  } else if (
    theirs.status === 200 &&
    ours.status === 400 &&
    simplifyOrdering(ordering) === 'several'
  ) {
    const sentence = `The source takes ordering=${cut(ordering)}, and it is a 400 here: no list has that order.`;
    findings.add('several-orderings', undefined, sentence);
  } else if (isUnknownOrdering(request, theirs, ours)) {
    const sentence = 'An unknown ordering is the default order in the source, and a 400 here.';
    findings.add('unknown-ordering', undefined, sentence);
  } else if (theirs.status !== ours.status) {
    const sentence = `The status is ${theirs.status} in the source, ${ours.status} here.`;
    findings.add('status', undefined, sentence);
  } else {
    compareHeaders(request, theirs, ours, bases, findings);
    const isRedirect = theirs.status >= 300 && theirs.status < 400;
    if (request.method !== 'HEAD' && !isRedirect) {
      compareBodies(request, theirs, ours, bases, findings);
    }
  }
  return nameTies(request.target, theirs, ours, findings.list());
}

function compareBodies(
  { method }: ComparedTarget,
  theirs: Answer,
  ours: Answer,
  bases: Bases,
  findings: Findings,
): void {
  // With two bases, equal bytes may contain a link to the wrong service.
  const isSame = theirs.body.equals(ours.body);
  if (isSame && bases.theirs === bases.ours) return;
  const isError = theirs.status >= 400;
  const [theirDocument, ourDocument] = [readDocument(theirs.body), readDocument(ours.body)];
  const isReadable = theirDocument.flaw === undefined && ourDocument.flaw === undefined;
  if (theirDocument.flaw !== ourDocument.flaw) {
    const [side, { flaw, reason }] = theirDocument.flaw
      ? (['in the source', theirDocument] as const)
      : (['here', ourDocument] as const);
    findings.add('body', isError ? 'error' : flaw, `The body ${side} ${reason}.`);
  }
  const both = { theirs: theirDocument.value, ours: ourDocument.value };
  if (both.theirs === undefined || both.ours === undefined || isDeeper(both, maxLevels)) {
    if (isSame || theirDocument.flaw !== ourDocument.flaw) return;
    const sentence = `The body is ${excerpt(theirs.body)} in the source, ${excerpt(ours.body)} here.`;
    const kind = isReadable ? 'value' : 'bytes-only';
    findings.add(isError ? 'body' : kind, isError ? 'error' : undefined, sentence);
  } else if (method === 'OPTIONS' && !isError) {
    compareKeys(both.theirs, both.ours, '', findings);
  } else {
    const found = new Findings();
    new DocumentComparison(found, bases).compare(both.theirs, both.ours);
    compareSpelling(theirDocument, ourDocument, bases, found);
    // A differing field of an error makes it another error.
    for (const { kind, where, sentence } of found.list()) {
      if (isError && kind !== 'bytes-only') findings.add('body', 'error', sentence);
      else findings.add(kind, where, sentence);
    }
  }
}

/** A record has two levels; recursion through many more would overflow the stack. */
const maxLevels = 64;

/** Each side is compared with how this service writes its value: an equal value may be written in another way. */
function compareSpelling(
  theirs: JsonText,
  ours: JsonText,
  { theirs: theirBase, ours: ourBase }: Bases,
  found: Findings,
): void {
  const [theirPlain, ourPlain] = [theirs, ours].map(({ value }) => encodeJson(value).toString());
  const isPlain = theirs.text === theirPlain;
  const strip = (text: string, base: Bases['theirs']) =>
    [base].flat().reduce((rest, start) => rest.replaceAll(start, ''), text);
  if (isPlain !== (ours.text === ourPlain)) {
    const [plain, written] = isPlain ? [ourPlain, ours.text] : [theirPlain, theirs.text];
    const side = isPlain ? 'here' : 'in the source';
    const sentence = `The body is written ${showBoth(written, plain).join(` ${side}, and plainly `)}.`;
    found.add('bytes-only', undefined, sentence);
  } else if (!isPlain && found.list().length === 0) {
    const texts = [strip(theirs.text, theirBase), strip(ours.text, ourBase)] as const;
    if (texts[0] === texts[1]) return;
    const sentence = `The body is written ${showBoth(...texts).join(' in the source, ')} here.`;
    found.add('bytes-only', undefined, sentence);
  }
}

/** The keys of OPTIONS, also of its `actions`, which only a viewer who may write gets. */
function compareKeys(theirs: unknown, ours: unknown, path: string, findings: Findings): void {
  if (Object(theirs) !== theirs || Object(ours) !== ours) return;
  const [theirKeys, ourKeys] = [Object.keys(Object(theirs)), Object.keys(Object(ours))];
  for (const key of new Set([...theirKeys, ...ourKeys])) {
    const name = `${path}${key}`.slice(0, 100);
    const [isTheirs, isOurs] = [theirKeys.includes(key), ourKeys.includes(key)];
    if (isTheirs && isOurs) {
      if (!/^actions(?:\.POST)?$/.test(name)) continue;
      compareKeys(readProperty(theirs, key), readProperty(ours, key), `${name}.`, findings);
    } else if (name !== 'actions') {
      const side = isTheirs ? 'is in the source, but not here' : 'is here, but not in the source';
      findings.add('value', name, `${name} ${side}.`);
    }
  }
}

/** The old service ignores an unknown ordering, and this one refuses it. */
function isUnknownOrdering(
  { method, target }: ComparedTarget,
  theirs: Answer,
  ours: Answer,
): boolean {
  if (theirs.status !== 200 || ours.status !== 400) return false;
  const ordering = readOrdering(target);
  if (ordering === '' || fieldOf(ordering) !== undefined) return false;
  return method === 'HEAD' || isInDefaultOrder(theirs);
}

/** Whether a page is newest first: otherwise the source does sort by the ordering. */
function isInDefaultOrder(answer: Answer): boolean {
  const { records } = readListingPage(answer, 'created') ?? {};
  const areDated = records?.every(({ key }) => typeof key === 'bigint') ?? false;
  return areDated && checkOrder(records ?? [], '').misplaced === undefined;
}

interface JsonText {
  readonly text: string;
  /** Undefined when it is not JSON. */
  readonly value?: unknown;
  /** Why not every app can read it as JSON (RFC 8259 §8.1), and the same as a clause. */
  readonly flaw?: 'byte-order-mark' | 'not-utf-8' | 'not-json';
  readonly reason?: string;
}

/** Reads also what has a byte order mark or another charset, so that the rest can be compared. */
function readDocument(body: Buffer): JsonText {
  const hasMark = body.subarray(0, 3).equals(byteOrderMark);
  const bytes = hasMark ? body.subarray(3) : body;
  const isText = isUtf8(bytes);
  const text = bytes.toString(isText ? 'utf8' : 'latin1');
  try {
    const value = parseJson(text);
    if (hasMark) return { text, value, flaw: 'byte-order-mark', reason: 'begins with such a mark' };
    if (isText) return { text, value };
    return { text, value, flaw: 'not-utf-8', reason: 'has bytes that are not UTF-8' };
  } catch (error) {
    const reason = `is ${excerpt(body)} (${cut(messageOf(error))})`;
    return { text, flaw: 'not-json', reason };
  }
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

function excerpt(body: Buffer): string {
  const text = body.toString('utf8', 0, 400).trim().replace(/\s+/g, ' ');
  return text === '' ? 'empty' : JSON.stringify(cut(text));
}
