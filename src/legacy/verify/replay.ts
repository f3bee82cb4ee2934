// Replays the requests of access logs against the old service and this one, and compares the answers.
import { setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import { type Progress, SourceError } from '../../old-listing/page.ts';
import { readAccessLog } from './access-log.ts';
import { Checker } from './checker.ts';
import {
  type Both,
  type ComparedService,
  limitRate,
  type Method,
  readBreak,
} from './compared-service.ts';
import type { Report } from './report.ts';

interface ReplayOptions extends Both<ComparedService> {
  readonly files: readonly string[];
  readonly stdin: Readable;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly prefix: string;
  readonly concurrency: number;
  readonly rate: number;
  readonly wait: number;
  /** Of a web app: most logs do not hold it. */
  readonly origin: string;
}

export interface ReplayOutcome {
  readonly lines: number;
  /** Requests of the log that were replayed; each distinct one is sent once. */
  readonly requests: number;
  readonly distinct: number;
  readonly left: Readonly<Record<'method' | 'path' | 'unreadable' | 'tooMany', number>>;
  /** How many were sent before a service became unreachable, and why. */
  readonly broken?: { readonly asked: number; readonly sentence: string };
}

/** Distinct requests that are held; most take some hundred bytes. */
const maxDistinct = 1_000_000;
const maxHeldBytes = 256 * 1024 * 1024;
const maxNamed = 3;

/** Collects the distinct requests of the logs, then sends each to both services. @throws SourceError for an unreadable log */
export async function replay(options: ReplayOptions, reporter: Progress): Promise<ReplayOutcome> {
  const { report, signal, concurrency, rate, wait, origin } = options;
  // Each request adds a listener; Node.js reports more than ten as a leak.
  setMaxListeners(4 * concurrency + 10, signal);
  const { counts, outcome } = await collect(options, reporter);
  const checker = new Checker({
    theirs: limitRate(options.theirs, rate),
    ours: limitRate(options.ours, rate),
    report,
    signal,
    wait,
    origin,
    notify: (sentence) => reporter.note(sentence),
  });
  const requests = counts.entries();
  let asked = 0;
  let sentence: string | undefined;
  const replayNext = async () => {
    for (const [key, times] of requests) {
      if (sentence !== undefined) return;
      const [method = '', target = ''] = key.split(' ');
      const targets = { theirs: target, ours: target };
      await checker.check({ method: method as Method, targets, times });
      reporter.progress(++asked, counts.size);
    }
  };
  const end = (error: unknown) => {
    sentence ??= readBreak(error);
  };
  await Promise.all(Array.from({ length: concurrency }, () => replayNext().catch(end)));
  if (sentence === undefined) await checker.recheck().catch(end);
  checker.reportUnconfirmed();
  return sentence === undefined ? outcome : { ...outcome, broken: { asked, sentence } };
}

async function collect({ files, stdin, signal, prefix }: ReplayOptions, reporter: Progress) {
  const counts = new Map<string, number>();
  const left = { method: 0, path: 0, unreadable: 0, tooMany: 0 };
  let lines = 0;
  let requests = 0;
  let bytes = 0;
  let unread: string | undefined;
  /** What comes before a broken part of a file is replayed, and other files. */
  async function* readAll() {
    for (const file of files) {
      try {
        yield* readAccessLog(file, stdin, signal);
      } catch (error) {
        if (!(error instanceof SourceError)) throw error;
        unread = error.message;
      }
    }
  }
  for await (const { where, request } of readAll()) {
    lines++;
    if (!request || !isSendable(request.target)) {
      if (++left.unreadable <= maxNamed)
        reporter.note(`${where} has no request that can be sent again.`);
      continue;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') left.method++;
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
  if (unread !== undefined && lines === 0) throw new SourceError(unread);
  const broken = unread === undefined ? {} : { broken: { asked: counts.size, sentence: unread } };
  const outcome: ReplayOutcome = { lines, requests, distinct: counts.size, left, ...broken };
  return { counts, outcome };
}

/** Without spaces and control characters, which would end the request line. */
const isSendable = (target: string) => /^[\x21-\xff]+$/.test(target);
