// Replays the requests of access logs against the old service and this one, and compares the answers.
import { setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import type { Reporter } from '../../transfer/reporter.ts';
import { readAccessLog } from './access-log.ts';
import { Checker } from './checker.ts';
import { type ComparedService, limitRate, type Method } from './compared-service.ts';
import { checkCors, unknownOrigin } from './cors-checks.ts';
import type { Report } from './report.ts';

interface ReplayOptions {
  readonly files: readonly string[];
  readonly stdin: Readable;
  readonly theirs: ComparedService;
  readonly ours: ComparedService;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly prefix: string;
  readonly concurrency: number;
  readonly rate: number;
  readonly wait: number;
  /** Origins of web apps: logs do not hold them. */
  readonly origins: readonly string[];
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
/** Paths that are also asked as pages of other origins ask: a service has few rules for many paths. */
const maxPreflighted = 20;

/** Collects the distinct requests of the logs, then sends each to both services. @throws SourceError for an unreadable log */
export async function replay(options: ReplayOptions, reporter: Reporter): Promise<ReplayOutcome> {
  const { report, signal, concurrency, rate, wait, origins } = options;
  // Each request adds a listener; Node.js reports more than ten as a leak.
  setMaxListeners(4 * concurrency + 10, signal);
  const { counts, outcome } = await collect(options, reporter);
  const checker = new Checker({
    theirs: limitRate(options.theirs, rate),
    ours: limitRate(options.ours, rate),
    report,
    signal,
    wait,
    origin: origins[0] ?? unknownOrigin,
    notify: (sentence) => reporter.note(sentence),
  });
  const requests = counts.entries();
  const paths = new Set<string>();
  let asked = 0;
  const replayNext = async () => {
    for (const [key, times] of requests) {
      const [method = '', target = ''] = split(key);
      const sent = { legacyTarget: target, ownTarget: target };
      await checker.check({ ...sent, method: method as Method, times });
      const [path = ''] = target.split('?', 1);
      if (origins.length > 0 && paths.size < maxPreflighted && !paths.has(path)) {
        paths.add(path);
        await checkCors(checker, { ...sent, method: 'GET' }, origins);
      }
      reporter.progress(++asked, counts.size);
      if (checker.unreachable !== undefined) return;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, replayNext));
  await checker.recheck();
  return checker.unreachable === undefined
    ? outcome
    : { ...outcome, broken: { asked, sentence: checker.unreachable } };
}

async function collect(
  { files, stdin, signal, prefix }: ReplayOptions,
  reporter: Reporter,
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
          reporter.note(`${where} holds no request that can be asked again.`);
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

/** Without spaces and control characters, which would end the request line. */
const isSendable = (target: string) => /^[\x21-\xff]+$/.test(target);

function split(key: string): [string, string] {
  const space = key.indexOf(' ');
  return [key.slice(0, space), key.slice(space + 1)];
}
