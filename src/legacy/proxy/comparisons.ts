// Compares a sample of the answers of both services after they were sent: no client waits for it.
import type { IncomingMessage } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { type Answer, toAnswer } from '../../http/client.ts';
import { hasBody } from '../../http/headers.ts';
import { clientOf } from '../../observability/clients.ts';
import { createLogThrottle } from '../../observability/log.ts';
import { compareAnswers } from '../compare/compare.ts';
import { type Accepted, isAccepted } from '../compare/difference.ts';
import { bufferAnswer, NotComparable, refuseLarge } from './answer-buffer.ts';
import { ComparisonBudget } from './comparison-budget.ts';
import { InnerApp, type InnerRequest } from './inner-app.ts';
import type { LegacyMetrics, Outcome } from './metrics.ts';

interface ComparisonOptions {
  readonly sample: number;
  readonly accepted: Accepted;
  readonly legacyUrl: string;
  /** Base of the links of this gateway; undefined: that of the request. */
  readonly publicUrl: string | undefined;
  readonly metrics: LegacyMetrics;
  readonly log: FastifyBaseLogger;
}

/** What a comparison needs of a request. Read before the answer: later the connection may be closed. */
export interface SampledRequest extends InnerRequest {
  readonly method: ComparedMethod;
  readonly route: string;
  readonly client: string;
  readonly knownParameters: ReadonlySet<string> | undefined;
}

type ComparedMethod = NonNullable<InnerRequest['method']>;
const isCompared = (method: string): method is ComparedMethod =>
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
/** Routes that the old service does not have. */
const ownDocuments = /^\/api\/(?:docs|openapi\.json)(?:\/|$)/;

/** Differences are not rechecked: replication lag of an import shows as values that differ. */
export class Comparisons {
  readonly #budget = new ComparisonBudget();
  readonly #logThrottle = createLogThrottle(false);
  #own: InnerApp | undefined;
  #buffered = 0;

  constructor(private readonly options: ComparisonOptions) {}

  /** @param serve adds the legacy paths of this gateway */
  async compareWith(serve: (app: FastifyInstance) => Promise<void>): Promise<void> {
    this.#own = await InnerApp.build(serve);
  }

  async close(): Promise<void> {
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
    request: SampledRequest,
    answer: IncomingMessage,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#buffered >= maxBuffered) return this.count('dropped');
    this.#buffered += 1;
    try {
      const theirs = await bufferAnswer(answer, maxSeconds).finally(() => {
        this.#buffered -= 1;
      });
      await this.compare(request, async () => theirs);
    } catch (error) {
      const isSkipped = signal.aborted || error instanceof NotComparable;
      this.count(isSkipped ? 'skipped' : 'unreachable');
    }
  }

  /** Never rejects. @param readTheirs rejects with NotComparable, or without an answer */
  async compare(request: SampledRequest, readTheirs: () => Promise<Answer>): Promise<void> {
    if (!this.#budget.tryAcquire()) return this.count('dropped');
    this.count(await this.#outcomeOf(request, readTheirs));
    this.#budget.release();
  }

  async #outcomeOf(request: SampledRequest, readTheirs: () => Promise<Answer>): Promise<Outcome> {
    let failed: Outcome = 'unreachable';
    try {
      const theirs = await readTheirs();
      if (theirs.status === 304) return 'skipped';
      failed = 'failed';
      const ours = await this.#own?.ask(request);
      // 503, overloaded or without database: that says nothing about its answers.
      if (!ours || ours.statusCode === 503) return 'failed';
      refuseLarge(ours.rawPayload);
      const answer = toAnswer(ours.statusCode, ours.headers, ours.rawPayload);
      return this.#budget.charge(() => this.#report(request, theirs, answer));
    } catch (error) {
      return error instanceof NotComparable ? 'skipped' : failed;
    }
  }

  /** Counts and logs the differences. */
  #report(request: SampledRequest, theirs: Answer, ours: Answer): Outcome {
    const { method, headers, protocol, host, target, route, client } = request;
    const { accepted, legacyUrl, publicUrl, metrics, log } = this.options;
    // Both services are reached under the public name: equal links are no difference, whichever base
    // each service has configured.
    const base = `${protocol}://${host}`;
    const bases = theirs.body.equals(ours.body)
      ? { theirs: base, ours: base }
      : { theirs: [base, publicUrl ?? base], ours: publicUrl ?? base };
    const found = compareAnswers({ method, target, headers }, theirs, ours, bases);
    if (found.length === 0) return 'same';
    const different = found.filter((difference) => !isAccepted(accepted, difference));
    for (const isDifferent of [true, false]) {
      const kinds = found.filter((one) => different.includes(one) === isDifferent);
      for (const kind of new Set(kinds.map((one) => one.kind))) {
        metrics.countDifference(kind, route, client, !isDifferent);
      }
    }
    if (different.length === 0) return 'accepted';
    const shown = showTarget(target, request.knownParameters);
    const theirUrl = `${legacyUrl}${shown}`.slice(0, maxAddress);
    const ourUrl = `${publicUrl ?? base}${shown}`.slice(0, maxAddress);
    const differences = different
      .slice(0, maxLogged)
      .map(({ kind, where }) => (where === undefined ? kind : `${kind} ${where}`));
    this.#logThrottle(log, (suppressed) => {
      const fields = { theirs: theirUrl, ours: ourUrl, differences, client, suppressed };
      log.warn(fields, 'answers differ');
    });
    return 'different';
  }
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
