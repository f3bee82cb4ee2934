// Trusted documents (a safelist): reads the manifest TRUSTED_DOCUMENTS, in the formats of the common generators.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type GraphQLSchema, Kind } from 'graphql';
import { z } from 'zod';
import { ConfigError } from '../config/config.ts';
import { messageOf } from '../errors.ts';
import { findExcessOf, type LimitConfig } from './plugins/cost.ts';
import { parseWithin, validateWithin } from './plugins/document-limits.ts';
import { sha256Id, type TrustedDocuments } from './plugins/stored-documents.ts';

/** `{ id: text }`, as of Relay's compiler and of the client preset of GraphQL Code Generator. */
const textsById = z.record(z.string(), z.string());

/** As of @apollo/generate-persisted-query-manifest. */
const apolloManifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id: z.string(), body: z.string() })),
});

/** Hash algorithm of a hexadecimal id, by its number of digits. */
const algorithms = new Map([
  [32, 'md5'],
  [40, 'sha1'],
  [64, 'sha256'],
]);

/**
 * Documents by id, and by the SHA-256 of their text.
 * @throws ConfigError that names the file, and a document that is invalid or exceeds the limits
 */
export async function readTrustedDocuments(
  file: string,
  schema: GraphQLSchema,
  config: LimitConfig,
): Promise<TrustedDocuments> {
  const wrong = (what: string) => new ConfigError(`TRUSTED_DOCUMENTS is "${file}", but ${what}.`);
  const texts = new Map<string, string>();
  for (const [id, text] of parseManifest(await read(file, wrong), wrong)) {
    if ((texts.get(id) ?? text) !== text) {
      throw wrong(`two documents in it have the id ${JSON.stringify(id)}: give each its own`);
    }
    if (!isHashOf(id, text)) {
      throw wrong(
        `the id ${JSON.stringify(id)} is not the hash of its document: generate the file again, and do not edit it`,
      );
    }
    const problem = findProblem(text, schema, config);
    if (problem) throw wrong(`the document ${JSON.stringify(id)} cannot be run: ${problem}`);
    texts.set(id, text);
  }
  if (texts.size === 0) throw wrong('there is no document in it');
  for (const text of [...texts.values()]) texts.set(sha256Id(text), text);
  return texts;
}

type Wrong = (what: string) => ConfigError;

async function read(file: string, wrong: Wrong): Promise<unknown> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    throw wrong(`it cannot be read (${messageOf(error)})`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    // The message quotes lines of the file.
    throw wrong(`it is not JSON (${messageOf(error).replace(/\s+/g, ' ')})`);
  }
}

function parseManifest(json: unknown, wrong: Wrong): [id: string, text: string][] {
  const manifest = apolloManifest.safeParse(json);
  if (manifest.success) return manifest.data.operations.map(({ id, body }) => [id, body]);
  const texts = textsById.safeParse(json);
  if (texts.success && texts.data['format'] === undefined) return Object.entries(texts.data);
  throw wrong(
    'it is neither an object of texts by their ids nor a manifest of Apollo of version 1 ("apollo-persisted-query-manifest")',
  );
}

/** Whether an id is the hash of the text; true for an id that does not look like a hash. */
function isHashOf(id: string, text: string): boolean {
  const [, prefix, digits = ''] = /^(?:(md5|sha1|sha256):)?([0-9a-f]+)$/i.exec(id) ?? [];
  const algorithm = prefix?.toLowerCase() ?? algorithms.get(digits.length);
  if (algorithm === undefined) return true;
  return createHash(algorithm).update(text).digest('hex') === digits.toLowerCase();
}

/** Why a document cannot be run, whatever its variables. */
function findProblem(text: string, schema: GraphQLSchema, config: LimitConfig): string | undefined {
  try {
    const document = parseWithin(text);
    const nodes = document.definitions.filter((one) => one.kind === Kind.OPERATION_DEFINITION);
    if (nodes.length === 0) return 'it has no operation';
    const invalid = validateWithin(schema, config, document);
    if (invalid.length > 0) return sentencesOf(invalid);
    const excess = nodes.flatMap((node) => findExcessOf(schema, config, { document, node }) ?? []);
    return excess[0] && sentencesOf(excess.slice(0, 1));
  } catch (error) {
    return sentencesOf([error as Error]);
  }
}

function sentencesOf(errors: readonly Error[]): string {
  return errors.map(({ message }) => message.replace(/\.$/, '')).join('; ');
}
