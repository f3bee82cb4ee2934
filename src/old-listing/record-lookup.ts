// Asks a live listing for single records by their ids, at `<listing><id>/`.
import { setTimeout as sleep } from 'node:timers/promises';
import type { FetchPage } from './fetch-page.ts';
import { type ReadOptions, readProperty, SourceError } from './page.ts';
import { isTemporary, retry } from './retry.ts';

export interface LookupOptions extends Pick<ReadOptions, 'signal' | 'pause' | 'notify'> {
  readonly listing: string;
  readonly fetchPage: FetchPage;
}

/** Ids that have just come in the listing: of each kind, the last ones. */
export type Recent = Readonly<Record<'public' | 'private', readonly number[]>>;

/** Milliseconds between two requests for records that are there. */
const controlInterval = 30_000;
const maxAttempts = 3;

/**
 * A 404 counts only if records that have just come in the listing are answered, before and after it.
 * @returns the ids that are a 404, and the records of others; undefined when the source does not answer for single records
 */
export async function lookUpRecords(options: LookupOptions, ids: Iterable<number>, recent: Recent) {
  const { signal, pause } = options;
  if (!(await isAnswering(options, recent))) return undefined;
  const found = { gone: [] as number[], records: [] as unknown[] };
  const missing: number[] = [];
  let controlled = performance.now();
  for (const id of ids) {
    const record = await readRecord(options, id);
    if (record === 'gone') missing.push(id);
    else if (record !== undefined) found.records.push(record);
    if (pause) await sleep(pause, undefined, { signal });
    if (performance.now() - controlled < controlInterval) continue;
    if (!(await isAnswering(options, recent))) return found;
    found.gone.push(...missing.splice(0));
    controlled = performance.now();
  }
  if (missing.length > 0 && (await isAnswering(options, recent))) found.gone.push(...missing);
  return found;
}

/** One of each kind: private outfits may be shown in lists, and be a 404 by themselves. */
async function isAnswering(options: LookupOptions, recent: Recent): Promise<boolean> {
  const kinds = Object.values(recent).filter((ids) => ids.length > 0);
  for (const ids of kinds) {
    let isFound = false;
    for (const id of ids) isFound ||= typeof (await readRecord(options, id)) === 'object';
    if (!isFound) return false;
  }
  return kinds.length > 0;
}

/** Undefined: the answer says nothing about the record. */
async function readRecord(
  { listing, fetchPage, signal, notify }: LookupOptions,
  id: number,
): Promise<object | 'gone' | undefined> {
  const url = new URL(listing);
  url.pathname = `${url.pathname.replace(/\/?$/, '/')}${id}/`;
  url.search = '';
  const attempt = async () => {
    const { status, body, retryAfter } = await fetchPage(url.href, signal);
    if (isTemporary(status)) return { problem: `answered ${status}`, retryAfter };
    return { result: { status, body } };
  };
  try {
    const outcome = await retry(url.href, attempt, { signal, notify, maxAttempts });
    if (!('result' in outcome)) return undefined;
    const { status, body } = outcome.result;
    if (status === 404 || status === 410) return 'gone';
    const record: unknown = status === 200 ? JSON.parse(body) : undefined;
    return readProperty(record, 'id') === id ? (record as object) : undefined;
  } catch (error) {
    if (error instanceof SourceError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
