// What a walk over the listing overlooks: the other REST paths of this service, and the parameters of each, with values of
// the first page.
import { type DocumentNode, getOperationAST, type TypeNode } from 'graphql';
import { readProperty } from '../../old-listing/page.ts';
import type { Checker } from './checker.ts';

/** A REST path of this service, and the document that answers it. */
export interface ComparedRoute {
  readonly path: string;
  readonly document: DocumentNode;
}

const listing = '/api/outfits/';
/** A number that no record has. */
const unknownId = '2147483647';
/** Which page it is, and in which order, is compared elsewhere. */
const walked = /^(?:page|last|offset|ordering)$/;

/** @param records those of the first page */
export async function checkRoutes(
  checker: Checker,
  routes: readonly ComparedRoute[],
  records: readonly unknown[],
): Promise<void> {
  const { theirs, ours } = checker.options;
  const beforeListing = (path: string) => path.slice(0, -listing.length);
  // Where the other paths are, is not known without this one.
  if (!theirs.path.endsWith(listing) || !ours.path.endsWith(listing)) return;
  const samples = [...new Set([0, records.length >> 1, records.length - 1])]
    .map((index) => records[index])
    .filter((record) => record !== undefined);
  for (const { path, document } of routes) {
    const hasParameters = path.includes(':');
    const known = (hasParameters ? samples : samples.slice(0, 1)).map((one) => fill(path, one));
    const [first] = known;
    if (first === undefined) continue;
    const unknown = hasParameters ? [path.replace(/:\w+/g, unknownId)] : [];
    const parameters = parametersOf(document, path, samples).map((one) => `${first}?${one}`);
    // The listing itself is walked.
    const targets = [...known, ...unknown, ...parameters].filter((target) => target !== listing);
    // A path that the source does not have is one that no app asks for.
    let isMissing = false;
    for (const target of targets) {
      if (target === undefined || isMissing) continue;
      await checker.check({
        method: 'GET',
        targets: {
          theirs: beforeListing(theirs.path) + target,
          ours: beforeListing(ours.path) + target,
        },
        select(differences, answers) {
          isMissing = target === first && answers.theirs.status === 404;
          return isMissing ? [] : differences;
        },
      });
    }
  }
}

/** Undefined: the record does not have a value of the path. */
function fill(path: string, record: unknown): string | undefined {
  let isFilled = true;
  const filled = path.replace(/(?:([^/]*?)s?\/)?:(\w+)/g, (text, holder: string, name: string) => {
    const owner = readProperty(record, holder) ?? record;
    const value = readProperty(owner, name) ?? readProperty(owner, 'id');
    isFilled &&= typeof value === 'string' || typeof value === 'number';
    return text.replace(`:${name}`, encodeURIComponent(String(value)));
  });
  return isFilled ? filled : undefined;
}

/** Query parameters of a document, such as `user=5`, with a value of the first record. */
function parametersOf(
  document: DocumentNode,
  path: string,
  [record]: readonly unknown[],
): string[] {
  const definitions = getOperationAST(document)?.variableDefinitions ?? [];
  return definitions.flatMap(
    ({
      variable: {
        name: { value: name },
      },
      type,
    }) => {
      if (walked.test(name) || path.includes(`:${name}`)) return [];
      const held = readProperty(record, name);
      const value = readProperty(held, 'id') ?? held ?? valueOfType(type, record);
      return /^(?:string|number|boolean)$/.test(typeof value)
        ? [`${name}=${encodeURIComponent(String(value))}`]
        : [];
    },
  );
}

function valueOfType(type: TypeNode, record: unknown): unknown {
  if (type.kind !== 'NamedType') return valueOfType(type.type, record);
  switch (type.name.value) {
    case 'Int':
      return 2;
    case 'Boolean':
      return true;
    case 'DateTime':
      return readProperty(record, 'created');
    case 'String':
      return /\p{L}{3,}/u.exec(String(readProperty(record, 'title')))?.[0];
    default:
      return undefined;
  }
}
