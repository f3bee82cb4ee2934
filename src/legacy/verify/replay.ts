// The requests of access logs, asked of the old service and of this one.
import { setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import type { Reporter } from '../../transfer/reporter.ts';
import { readAccessLog } from './access-log.ts';
import { Checker } from './checker.ts';
import type { Report } from './report.ts';
import { type Method, paceSide, type Side } from './side.ts';

interface ReplayOptions {
  readonly files: readonly string[];
  readonly stdin: Readable;
  readonly theirs: Side;
  readonly ours: Side;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly prefix: string;
  readonly concurrency: number;
  readonly rate: number;
  readonly wait: number;
}

export interface ReplayOutcome {
  readonly lines: number;
  /** Requests of the log that were asked; each distinct one only once. */
  readonly requests: number;
  readonly distinct: number;
  readonly left: Readonly<Record<'method' | 'path' | 'unreadable' | 'tooMany', number>>;
  /** How many were asked before nobody answered any more, and who it was. */
  readonly broken?: { readonly asked: number; readonly sentence: string };
}

/** Different requests that are held; most take some hundred bytes. */
const maxDistinct = 1_000_000;
const maxHeldBytes = 256 * 1024 * 1024;
const maxNamed = 3;

/** Collects what the logs ask, then asks it of both sides. @throws SourceError for an unreadable log */
export async function replay(options: ReplayOptions, reporter: Reporter): Promise<ReplayOutcome> {
  const { report, signal, concurrency, rate, wait } = options;
  // Each request listens to it, and more than ten would be taken for a leak.
  setMaxListeners(4 * concurrency + 10, signal);
  const { counts, outcome } = await collect(options, reporter);
  const checker = new Checker({
    theirs: paceSide(options.theirs, rate),
    ours: paceSide(options.ours, rate),
    report,
    signal,
    wait,
    notify: reporter.note,
  });
  const requests = counts.entries();
  let asked = 0;
  const work = async () => {
    for (const [key, times] of requests) {
      const [method = '', target = ''] = split(key);
      await checker.check({ method: method as Method, there: target, here: target, times });
      reporter.progress(++asked, counts.size);
      if (checker.dead !== undefined) return;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  await checker.settle();
  return checker.dead === undefined
    ? outcome
    : { ...outcome, broken: { asked, sentence: checker.dead } };
}

async function collect(
  { files, stdin, signal, prefix }: ReplayOptions,
  { note }: Reporter,
): Promise<{ counts: Map<string, number>; outcome: ReplayOutcome }> {
  const counts = new Map<string, number>();
  const left = { method: 0, path: 0, unreadable: 0, tooMany: 0 };
  let lines = 0;
  let requests = 0;
  let bytes = 0;
  for (const file of files) {
    for await (const { where, request } of readAccessLog(file, stdin, signal)) {
      lines++;
      if (!request || !isSendable(request.target)) {
        if (++left.unreadable <= maxNamed)
          note(`${where} holds no request that can be asked again.`);
      } else if (request.method !== 'GET' && request.method !== 'HEAD') left.method++;
      else if (!request.target.startsWith(prefix)) left.path++;
      else {
        const key = `${request.method} ${request.target}`;
        const times = counts.get(key);
        const isFull = counts.size === maxDistinct || bytes + key.length > maxHeldBytes;
        if (times === undefined && isFull) left.tooMany++;
        else {
          if (times === undefined) bytes += key.length;
          counts.set(key, (times ?? 0) + 1);
          requests++;
        }
      }
    }
  }
  return { counts, outcome: { lines, requests, distinct: counts.size, left } };
}

/** Spaces and control characters would end the request line. */
const isSendable = (target: string) => /^[\x21-\xff]+$/.test(target);

function split(key: string): [string, string] {
  const space = key.indexOf(' ');
  return [key.slice(0, space), key.slice(space + 1)];
}
