// Compares a sample of the answers of both services after they were sent: no client waits for it.
import type { IncomingMessage } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { type Answer, toAnswer } from '../../http/client.ts';
import { hasBody } from '../../http/headers.ts';
import { clientOf } from '../../observability/clients.ts';
import { createLogThrottle } from '../../observability/log.ts';
import { compareAnswers } from '../compare/compare.ts';
import {
  type Accepted,
  type Difference,
  isAccepted,
  transientKinds,
} from '../compare/difference.ts';
import { bufferAnswer, NotComparable, refuseLarge } from './answer-buffer.ts';
import { ComparisonBudget } from './comparison-budget.ts';
import { askInnerApp, buildInnerApp, type InnerRequest } from './inner-app.ts';
import type { LegacyMetrics, Outcome } from './metrics.ts';

interface ComparisonOptions {
  readonly sample: number;
  readonly accepted: Accepted;
  /** Milliseconds after which what differs is compared again; 0: never. */
  readonly recheck: number;
  /** Whether the data is written here, and the old service stays as it was. */
  readonly isOwner: boolean;
  readonly legacyUrl: string;
  /** Base of the links of this gateway; undefined: that of the request. */
  readonly publicUrl: string | undefined;
  readonly metrics: LegacyMetrics;
  readonly log: FastifyBaseLogger;
}

/** What a comparison needs of a request. Read before the answer: later the connection may be closed. */
export interface SampledRequest extends InnerRequest {
  readonly route: string;
  readonly client: string;
  readonly knownParameters: ReadonlySet<string> | undefined;
}

const isCompared = (method: string): method is InnerRequest['method'] =>
  /^(?:GET|HEAD|OPTIONS)$/.test(method);

/** Headers of conditional requests, ranges and encodings (RFC 9110): a comparison needs whole answers. */
export const conditionalHeaders = new Set([
  'accept-encoding',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
]);

/** Forwarded answers that are buffered at a time: half a MiB each. */
const maxBuffered = 32;
/** Seconds after which buffering stops: backpressure of a slow client slows it down. */
const maxSeconds = 5;
const maxAddress = 300;
const maxLogged = 10;
/** Comparisons that are repeated later: each holds the headers of its request. */
const maxPending = 200;
/** Milliseconds until a comparison is tried again that was over the budget. */
const retryInterval = 1_000;
/** Routes that the old service does not have. */
const ownDocuments = /^\/api\/(?:docs|openapi\.json)(?:\/|$)/;

/** What one comparison is about. */
export interface Compared {
  readonly request: SampledRequest;
  /** Asks the old service. Rejects with NotComparable, or without an answer. */
  readonly readAgain: () => Promise<Answer>;
  /** What differed at the first comparison. */
  readonly before?: ReadonlySet<string>;
}

export class Comparisons {
  readonly #budget = new ComparisonBudget();
  readonly #logThrottle = createLogThrottle(false);
  #own: FastifyInstance | undefined;
  #buffered = 0;
  readonly #pending = new Set<NodeJS.Timeout>();

  constructor(private readonly options: ComparisonOptions) {}

  /** @param serve adds the legacy paths of this gateway */
  async compareWith(serve: (app: FastifyInstance) => Promise<void>): Promise<void> {
    this.#own = await buildInnerApp(serve);
  }

  async close(): Promise<void> {
    for (const timer of this.#pending) clearTimeout(timer);
    await this.#own?.close();
  }

  /** Undefined for a request that is not in the sample, or cannot be compared. */
  sample(request: FastifyRequest): SampledRequest | undefined {
    const { method, headers, protocol, host, routeOptions, url: target } = request;
    const { sample } = this.options;
    if (!this.#own || !isCompared(method) || Math.random() * 100 >= sample) return undefined;
    const { url: route = 'none', config } = routeOptions;
    if (!headers.host || hasBody(headers) || ownDocuments.test(route)) return undefined;
    const kept = Object.entries(headers).filter(([name]) => !conditionalHeaders.has(name));
    return {
      ...{ method, headers: Object.fromEntries(kept), protocol, host, target, route },
      client: clientOf(request).name,
      knownParameters: config.knownParameters,
    };
  }

  count(outcome: Outcome): void {
    this.options.metrics.countComparison(outcome);
  }

  /** Buffers and compares an answer that is forwarded. Never rejects. @param signal aborted when the client leaves */
  async compareForwarded(
    compared: Compared,
    answer: IncomingMessage,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#buffered >= maxBuffered) return this.count('dropped');
    this.#buffered += 1;
    try {
      const theirs = await bufferAnswer(answer, maxSeconds).finally(() => {
        this.#buffered -= 1;
      });
      await this.compare(compared, async () => theirs);
    } catch (error) {
      const isSkipped = signal.aborted || error instanceof NotComparable;
      this.count(isSkipped ? 'skipped' : 'unreachable');
    }
  }

  /** Never rejects. @param readTheirs gives the answer of the old service */
  async compare(compared: Compared, readTheirs = compared.readAgain): Promise<void> {
    if (!this.#budget.tryAcquire()) {
      if (compared.before) this.#compareLater(compared, retryInterval);
      else this.count('dropped');
      return;
    }
    const found = await this.#find(compared.request, readTheirs);
    this.#budget.release();
    if (typeof found === 'string') this.count(found);
    else this.#judge(compared, found);
  }

  #compareLater(compared: Compared, delay: number): void {
    const timer = setTimeout(() => {
      this.#pending.delete(timer);
      void this.compare(compared);
    }, delay).unref();
    this.#pending.add(timer);
  }

  /** The differences, or why there is nothing to compare. */
  async #find(
    request: SampledRequest,
    readTheirs: () => Promise<Answer>,
  ): Promise<Difference[] | Outcome> {
    let failed: Outcome = 'unreachable';
    try {
      const theirs = await readTheirs();
      if (theirs.status === 304) return 'skipped';
      failed = 'failed';
      const ours = this.#own && (await askInnerApp(this.#own, request));
      // 503, overloaded or without database: that says nothing about its answers.
      if (!ours || ours.statusCode === 503) return 'failed';
      refuseLarge(ours.rawPayload);
      const answer = toAnswer(ours.statusCode, ours.headers, ours.rawPayload);
      return this.#budget.charge(() => this.#compare(request, theirs, answer));
    } catch (error) {
      return error instanceof NotComparable ? 'skipped' : failed;
    }
  }

  /** Reports what differs, now or when it differs in the same way later: until then one side may have been behind. */
  #judge(compared: Compared, found: readonly Difference[]): void {
    const { before, request } = compared;
    const { accepted, recheck, isOwner } = this.options;
    const different = found.filter((difference) => !isAccepted(accepted, difference));
    const others = found.filter((difference) => !different.includes(difference));
    const same = before ? different.filter((one) => before.has(keyOf(one))) : different;
    const isStale = isOwner && !before && different.length > 0 && isWrittenHere(different);
    if (same.length === 0 || isStale) {
      const equal = others.length === 0 ? 'same' : 'accepted';
      this.#report(request, [], others);
      this.count(before || isStale ? 'stale' : equal);
    } else if (before || recheck === 0 || different.some(({ kind }) => !transientKinds.has(kind))) {
      this.#report(request, same, others);
      this.count('different');
    } else if (this.#pending.size >= maxPending) this.count('dropped');
    else this.#compareLater({ ...compared, before: new Set(different.map(keyOf)) }, recheck);
  }

  #compare(request: SampledRequest, theirs: Answer, ours: Answer): Difference[] {
    const { method, headers, protocol, host, target } = request;
    const { publicUrl } = this.options;
    // Both services are reached under the public name: equal links are no difference, whichever base
    // each service has configured.
    const base = `${protocol}://${host}`;
    const bases = theirs.body.equals(ours.body)
      ? { theirs: base, ours: base }
      : { theirs: [base, publicUrl ?? base], ours: publicUrl ?? base };
    return compareAnswers({ method, target, headers }, theirs, ours, bases);
  }

  /** Counts the differences, and logs those that are not accepted. */
  #report(
    { protocol, host, target, route, client, knownParameters }: SampledRequest,
    different: readonly Difference[],
    accepted: readonly Difference[],
  ): void {
    const { legacyUrl, publicUrl, metrics, log } = this.options;
    for (const kinds of [different, accepted]) {
      for (const kind of new Set(kinds.map((one) => one.kind))) {
        metrics.countDifference(kind, route, client, kinds === accepted);
      }
    }
    if (different.length === 0) return;
    const shown = showTarget(target, knownParameters);
    const theirUrl = `${legacyUrl}${shown}`.slice(0, maxAddress);
    const ourUrl = `${publicUrl ?? `${protocol}://${host}`}${shown}`.slice(0, maxAddress);
    const differences = different
      .slice(0, maxLogged)
      .map(({ kind, where }) => (where === undefined ? kind : `${kind} ${where}`));
    this.#logThrottle(log, (suppressed) => {
      const fields = { theirs: theirUrl, ours: ourUrl, differences, client, suppressed };
      log.warn(fields, 'answers differ');
    });
  }
}

/** With the values that differ: where they change, the data has changed. */
function keyOf({ kind, where, sentence }: Difference): string {
  return `${kind} ${where} ${sentence.replace(/ \(and \d+ more .*/, '')}`;
}

/** Whether what is written here explains the differences: counts, likes, records, and fields of records that were modified. */
function isWrittenHere(differences: readonly Difference[]): boolean {
  const isModified = differences.some(({ where }) => /(?:^|\.)modified$/.test(where ?? ''));
  return differences.every(
    ({ kind, where = '', sentence }) =>
      kind === 'records' ||
      kind === 'tie-order' ||
      (kind === 'status' && /\b(?:200|404)\b.+\b(?:200|404)\b/.test(sentence)) ||
      (kind === 'value' && (isModified || /(?:^|\.)(?:count|next|previous|likes)$/.test(where))),
  );
}

/** A target for the log, with the values of the parameters that the route reads; others may be secrets. */
function showTarget(target: string, knownParameters: ReadonlySet<string> | undefined): string {
  const [path = '', ...rest] = target.split('?');
  if (rest.length === 0) return path;
  const parameters = rest.join('?').split('&');
  const shown = parameters.map((parameter) => {
    const [name = ''] = parameter.split('=', 1);
    return knownParameters?.has(name) || name === parameter ? parameter : `${name}=…`;
  });
  return `${path}?${shown.join('&')}`;
}
