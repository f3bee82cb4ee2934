// Compares an answer of the old service with ours: verify, replay and the modes with comparisons use it.
import { isUtf8 } from 'node:buffer';
import { cut } from '../../errors.ts';
import type { Answer } from '../../http/client.ts';
import { simplifyOrdering } from '../../outfits/ordering.ts';
import { type Bases, DocumentComparison } from './compare-documents.ts';
import { type ComparedTarget, compareHeaders, comparePreflights } from './compare-headers.ts';
import { type Difference, Findings } from './difference.ts';
import { type JsonNode, parseJsonTree } from './json-tree.ts';
import { fieldOf, nameTies, readListingPage, readOrdering } from './listing-page.ts';

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
    findings.add('not-json', 'compression', sentence);
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
  const [theirDocument, ourDocument] = [readDocument(theirs.body), readDocument(ours.body)];
  const isError = theirs.status >= 400;
  compareFlaws(theirDocument, ourDocument, findings);
  if (!theirDocument || !ourDocument) {
    const kind = isError ? 'error-body' : theirDocument || ourDocument ? 'not-json' : 'bytes-only';
    const sentence = `The body is ${excerpt(theirs.body)} in the source, ${excerpt(ours.body)} here.`;
    if (!isSame) findings.add(kind, undefined, sentence);
  } else if (method === 'OPTIONS' && !isError) {
    compareKeys(theirDocument.root, ourDocument.root, '', findings);
  } else {
    const found = isError ? new Findings() : findings;
    new DocumentComparison(found, bases).compare(theirDocument.root, ourDocument.root);
    if (theirDocument.spaces !== ourDocument.spaces) {
      const [a, b] = [theirDocument.spaces, ourDocument.spaces].map((spaces) =>
        cut(JSON.stringify(spaces)),
      );
      found.add('bytes-only', undefined, `Spaces between values: ${a} in the source, ${b} here.`);
    }
    if (isError) addErrors(found, findings);
  }
}

/** A differing field of an error makes it another error. */
function addErrors(found: Findings, findings: Findings): void {
  for (const { kind, where, sentence } of found.list()) {
    findings.add(kind === 'bytes-only' ? kind : 'error-body', where, sentence);
  }
}

/** The keys of OPTIONS, also of its `actions`, which only a viewer who may write gets. */
function compareKeys(theirs: JsonNode, ours: JsonNode, path: string, findings: Findings): void {
  if (theirs.type !== 'object' || ours.type !== 'object') return;
  const [theirMembers, ourMembers] = [theirs.members, ours.members];
  for (const [key, { value }] of theirMembers) {
    const name = `${path}${key}`.slice(0, 100);
    const other = ourMembers.get(key)?.value;
    if (!other && name === 'actions') continue;
    if (!other) findings.add('missing-field', name, `${name} is in the source, but not here.`);
    else if (/^actions(?:\.POST)?$/.test(name)) compareKeys(value, other, `${name}.`, findings);
  }
  for (const key of ourMembers.keys()) {
    const name = `${path}${key}`;
    if (theirMembers.has(key) || name === 'actions') continue;
    findings.add('extra-field', name, `${name} is here, but not in the source.`);
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
  const moments = records?.map(({ key }) => (/^-?\d+$/.test(key) ? BigInt(key) : undefined));
  return (
    moments?.every((moment, index) => {
      const before = moments[index - 1];
      return moment !== undefined && (before === undefined || moment <= before);
    }) ?? false
  );
}

type ReadDocument = NonNullable<ReturnType<typeof readDocument>>;

/** Reads also what is no JSON because of one flaw, so that the rest can be compared. */
function readDocument(body: Buffer) {
  const hasMark = body.subarray(0, 3).equals(byteOrderMark);
  const bytes = hasMark ? body.subarray(3) : body;
  const isText = isUtf8(bytes);
  const document = parseJsonTree(bytes.toString(isText ? 'utf8' : 'latin1'), true);
  if (!document) return undefined;
  const flaws: Partial<Record<(typeof flawNames)[number], string>> = {
    ...(hasMark ? { 'byte-order-mark': 'begins with a byte order mark' } : {}),
    ...(isText ? {} : { 'not-utf-8': 'has bytes that are not UTF-8, such as those of Latin-1' }),
    ...(document.rest === ''
      ? {}
      : {
          'trailing-bytes': `goes on behind the document: ${excerpt(Buffer.from(document.rest))}`,
        }),
  };
  return { ...document, flaws };
}

/** @see RFC 8259 §8.1: UTF-8, without a byte order mark. */
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

const flawNames = ['byte-order-mark', 'not-utf-8', 'trailing-bytes'] as const;

/** What makes one side no JSON that every app can read. */
function compareFlaws(
  theirs: ReadDocument | undefined,
  ours: ReadDocument | undefined,
  findings: Findings,
): void {
  for (const name of flawNames) {
    const [theirFlaw, ourFlaw] = [theirs?.flaws[name], ours?.flaws[name]];
    if ((theirFlaw === undefined) === (ourFlaw === undefined)) continue;
    const side = theirFlaw === undefined ? 'here' : 'in the source';
    findings.add('not-json', name, `The body ${side} ${theirFlaw ?? ourFlaw}.`);
  }
}

function excerpt(body: Buffer): string {
  const text = body.toString('utf8', 0, 400).trim().replace(/\s+/g, ' ');
  return text === '' ? 'empty' : JSON.stringify(cut(text));
}
