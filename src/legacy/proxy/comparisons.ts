// Compares a sample of the answers of both sides, after they were sent: never in a client's way.
import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { type Answer, createDecoder, readAtMost, toAnswer } from '../../http/client.ts';
import { createLogThrottle } from '../../observability/log.ts';
import { createInnerApp, type InnerApp, type InnerQuestion } from '../../rest/inner-app.ts';
import { compareAnswers } from '../compare/compare.ts';
import { type Accepted, isAccepted } from '../compare/difference.ts';
import type { LegacyMetrics, Outcome } from './metrics.ts';
import { hasBody } from './upstream.ts';

interface ComparisonOptions {
  readonly sample: number;
  readonly accepted: Accepted;
  readonly legacyUrl: string;
  /** Base of the links here; undefined: that of the request. */
  readonly publicUrl: string | undefined;
  readonly metrics: LegacyMetrics;
  readonly clientOf: (request: FastifyRequest) => string;
  readonly log: FastifyBaseLogger;
}

/** Read before the answer: afterwards the connection may be gone, and what it said of the sender. */
export interface Compared extends InnerQuestion {
  readonly route: string;
  readonly client: string;
  readonly known: ReadonlySet<string> | undefined;
}

/** Request headers that a comparison must not depend on. */
export const conditions = new Set([
  'accept-encoding',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
]);

/** Answers that may be listened to at a time: half a MiB each. */
const maxOverheard = 32;
/** Seconds for which one is: a client that reads slowly holds it up. */
const maxSeconds = 5;
/** Most bytes of a body that is compared, before and after it is decoded: a page of 20 records has some 20 KiB. */
const maxBytes = 524_288;
/** Most commas in it: what takes time is how many values a body has. 20 records have some 500. */
const maxCommas = 20_000;
const maxAddress = 300;
const maxShown = 10;
/** The routes of which the old service knows nothing. */
const ownDocuments = /^\/api\/(?:docs|openapi\.json)(?:\/|$)/;

/** Differences are counted as they are seen: an import that is behind shows as values that differ. */
export class Comparisons {
  readonly #turns = new Turns();
  readonly #logThrottle = createLogThrottle(false);
  #own: InnerApp | undefined;
  #overheard = 0;

  constructor(private readonly options: ComparisonOptions) {}

  /** @param serve adds the legacy paths of this gateway */
  async compareWith(serve: (app: FastifyInstance) => Promise<void>): Promise<void> {
    this.#own = await createInnerApp(serve);
  }

  async close(): Promise<void> {
    await this.#own?.close();
  }

  choose(request: FastifyRequest): Compared | undefined {
    const { method, headers, protocol, host, routeOptions, url: target } = request;
    const { sample, clientOf } = this.options;
    if (!this.#own || method !== 'GET' || Math.random() * 100 >= sample) return undefined;
    const { url: route = 'none', config } = routeOptions;
    if (!host || hasBody(headers) || ownDocuments.test(route)) return undefined;
    const kept = Object.entries(headers).filter(([name]) => !conditions.has(name));
    return {
      ...{ headers: Object.fromEntries(kept), protocol, host, target, route },
      client: clientOf(request),
      known: config.knownParameters,
    };
  }

  count(outcome: Outcome): void {
    this.options.metrics.countComparison(outcome);
  }

  /** Never rejects. @param signal aborted when the client leaves, which is no fault of the answer */
  async overhear(asked: Compared, answer: IncomingMessage, signal: AbortSignal): Promise<void> {
    if (this.#overheard >= maxOverheard) return this.count('dropped');
    this.#overheard += 1;
    try {
      const theirs = await receive(answer, maxSeconds).finally(() => {
        this.#overheard -= 1;
      });
      await this.run(asked, async () => theirs);
    } catch (error) {
      const isSkipped = signal.aborted || error instanceof NotComparable;
      this.count(isSkipped ? 'skipped' : 'unreachable');
    }
  }

  /** Never rejects. @param readTheirs rejects with NotComparable, or when there is no answer */
  async run(asked: Compared, readTheirs: () => Promise<Answer>): Promise<void> {
    if (!this.#turns.take()) return this.count('dropped');
    this.count(await this.#compare(asked, readTheirs));
    this.#turns.giveBack();
  }

  async #compare(asked: Compared, readTheirs: () => Promise<Answer>): Promise<Outcome> {
    let failed: Outcome = 'unreachable';
    try {
      const theirs = await readTheirs();
      if (theirs.status === 304) return 'skipped';
      failed = 'failed';
      const ours = await this.#own?.ask(asked);
      // Busy or without database: that says nothing about its answers.
      if (!ours || ours.statusCode === 503) return 'failed';
      refuseLarge(ours.rawPayload);
      const answer = toAnswer(ours.statusCode, ours.headers, ours.rawPayload);
      return this.#turns.time(() => this.#judge(asked, theirs, answer));
    } catch (error) {
      return error instanceof NotComparable ? 'skipped' : failed;
    }
  }

  #judge(asked: Compared, theirs: Answer, ours: Answer): Outcome {
    const { protocol, host, target, route, client } = asked;
    const { accepted, legacyUrl, publicUrl, metrics, log } = this.options;
    // Both answer under the public name. Links that are the same for the client are no difference,
    // whatever either side takes for its base.
    const base = `${protocol}://${host}`;
    const bases = theirs.body.equals(ours.body)
      ? { theirs: base, ours: base }
      : { theirs: [base, publicUrl ?? base], ours: publicUrl ?? base };
    const found = compareAnswers({ method: 'GET', target }, theirs, ours, bases);
    if (found.length === 0) return 'same';
    const different = found.filter((difference) => !isAccepted(accepted, difference));
    for (const isDifferent of [true, false]) {
      const kinds = found.filter((one) => different.includes(one) === isDifferent);
      for (const kind of new Set(kinds.map((one) => one.kind))) {
        metrics.countDifference(kind, route, client, !isDifferent);
      }
    }
    if (different.length === 0) return 'accepted';
    const shown = showTarget(target, asked.known);
    const theirUrl = `${legacyUrl}${shown}`.slice(0, maxAddress);
    const ourUrl = `${publicUrl ?? base}${shown}`.slice(0, maxAddress);
    const differences = different
      .slice(0, maxShown)
      .map(({ kind, where }) => (where === undefined ? kind : `${kind} ${where}`));
    this.#logThrottle(log, (suppressed) => {
      const told = { theirs: theirUrl, ours: ourUrl, differences, client, suppressed };
      log.warn(told, 'answers differ');
    });
    return 'different';
  }
}

/** An address for the log: values only of the query parameters that the route reads. */
function showTarget(target: string, known: ReadonlySet<string> | undefined): string {
  const [path = '', ...rest] = target.split('?');
  if (rest.length === 0) return path;
  const parameters = rest.join('?').split('&');
  const shown = parameters.map((parameter) => {
    const [name = ''] = parameter.split('=', 1);
    return known?.has(name) || name === parameter ? parameter : `${name}=…`;
  });
  return `${path}?${shown.join('&')}`;
}

/** Why an answer cannot be compared; nothing is wrong with it. */
class NotComparable extends Error {}

/** To be called before any of the answer has been read. @throws NotComparable, or its error when it breaks off */
export async function receive(answer: IncomingMessage, seconds?: number): Promise<Answer> {
  let chunks: Buffer[] | undefined = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((settle, reject) => {
    const giveUp = (reason: string) => {
      chunks = undefined;
      reject(new NotComparable(reason));
    };
    if (seconds !== undefined) timer = setTimeout(giveUp, 1000 * seconds, 'too slow');
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) giveUp('too large');
      else chunks?.push(chunk);
    });
    finished(answer.resume(), (error) => (error ? reject(error) : settle()));
  }).finally(() => clearTimeout(timer));
  const { 'content-encoding': encoding, ...headers } = answer.headers;
  const body = await decode(Buffer.concat(chunks), encoding);
  refuseLarge(body);
  return toAnswer(answer.statusCode ?? 0, headers, body);
}

async function decode(bytes: Buffer, encoding = 'identity'): Promise<Buffer> {
  if (/^\s*identity\s*$/i.test(encoding)) return bytes;
  const decoder = createDecoder(encoding);
  if (!decoder) throw new NotComparable('encoded in another way');
  const decoded = await readAtMost(decoder.end(bytes), maxBytes).catch(() => undefined);
  if (!decoded) throw new NotComparable('too large, or cannot be decoded');
  return decoded;
}

/** Nothing else is answered while a body is compared. @throws NotComparable */
function refuseLarge(body: Buffer): void {
  let commas = 0;
  if (body.length <= maxBytes) for (const byte of body) if (byte === 0x2c) commas++;
  if (body.length > maxBytes || commas > maxCommas) throw new NotComparable('too large');
}

/** Most at a time; each may hold the bytes of two answers. */
const maxUnderWay = 4;
/** Most in a second: more would tell no more. */
const maxPerSecond = 50;
/** How much longer than a comparison it is until the next one may begin. */
const restFactor = 10;
/** Milliseconds of rest that may be owed before the next one has to wait. */
const burst = 500;

/** Which comparisons are made: few at a time, and no more than a tenth of the processor's time. */
export class Turns {
  #underWay = 0;
  #secondEnds = 0;
  #taken = 0;
  #restUntil = 0;

  /** Whether one more may be made; then it must be given back. */
  take(): boolean {
    const now = performance.now();
    if (now >= this.#secondEnds) {
      this.#secondEnds = now + 1_000;
      this.#taken = 0;
    }
    if (this.#underWay >= maxUnderWay || this.#taken >= maxPerSecond) return false;
    if (now < this.#restUntil) return false;
    this.#underWay += 1;
    this.#taken += 1;
    return true;
  }

  giveBack(): void {
    this.#underWay -= 1;
  }

  /** Runs what holds up everything else meanwhile, and has others wait for it. */
  time<Result>(work: () => Result): Result {
    const begun = performance.now();
    try {
      return work();
    } finally {
      const now = performance.now();
      this.#restUntil = Math.max(this.#restUntil, now - burst) + restFactor * (now - begun);
    }
  }
}
