// Compares a sample of the answers of both sides, after they were sent: never in a client's way.
import type { IncomingMessage } from 'node:http';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import type { Answer } from '../http/client.ts';
import { createPacer } from '../observability/log.ts';
import { compareAnswers } from './compare.ts';
import { type Accepted, isAccepted } from './difference.ts';
import { hasBody } from './forward.ts';
import type { LegacyMetrics, Outcome } from './legacy-metrics.ts';
import type { OwnAnswers, OwnQuestion } from './own-answers.ts';
import { NotComparable, receive, refuseLarge } from './received.ts';
import { createTurns } from './turns.ts';

export interface ComparisonOptions {
  /** Percent of the GET requests. */
  readonly sample: number;
  /** Differences that are counted only. */
  readonly accepted: Accepted;
  readonly legacyUrl: string;
  /** Base of the links here; undefined: that of the request. */
  readonly publicUrl: string | undefined;
  /** Undefined as long as the app is being built. */
  readonly own: () => OwnAnswers | undefined;
  readonly metrics: LegacyMetrics;
  /** Who sends a request: one of few names. */
  readonly clientOf: (request: FastifyRequest) => string;
  readonly log: FastifyBaseLogger;
}

/** What is to become of one request of the sample. It holds no place until its answers are there. */
export interface Comparison {
  /**
   * Listens to the answer of the old service on its way to the client, and compares it then. Never
   * rejects. @param signal aborted when the client leaves, which is no fault of the answer
   */
  overhear(answer: IncomingMessage, signal: AbortSignal): Promise<void>;
  /**
   * Asks the old service, and compares. Never rejects.
   * @param ask rejects with NotComparable, or when there is no answer
   */
  run(ask: () => Promise<Answer>): Promise<void>;
  /** There is no answer to compare. */
  leave(outcome: Outcome): void;
}

/** Answers that may be listened to at a time: half a MiB each. */
const maxOverheard = 32;
/** Seconds for which one is: a client that reads slowly holds it up. */
const maxSeconds = 5;
/** Characters of an address that are logged. */
const maxAddress = 300;
/** The routes of which the old service knows nothing. */
const ownDocuments = /^\/api\/(?:docs|openapi\.json)(?:\/|$)/;
/** Differences that are logged of one comparison. */
const maxShown = 10;

/**
 * Makes what decides whether a request is compared; undefined: it is not. Differences are counted as
 * they are seen: an import that is behind shows as values that differ.
 */
export function createComparisons(
  options: ComparisonOptions,
): (request: FastifyRequest) => Comparison | undefined {
  const { sample, metrics, own } = options;
  const report = createReport(options);
  const turns = createTurns();
  let overheard = 0;

  return (request) => {
    if (request.method !== 'GET' || Math.random() * 100 >= sample) return undefined;
    if (!request.host || hasBody(request.headers)) return undefined;
    if (ownDocuments.test(request.routeOptions.url ?? '')) return undefined;
    const answers = own();
    if (!answers) return undefined;
    const asked = readAsked(request, options);
    const leave = (outcome: Outcome) => metrics.countComparison(outcome);
    const run = async (ask: () => Promise<Answer>) => {
      if (!turns.take()) return leave('dropped');
      const readOurs = () => answers.get(asked);
      const judge = (theirs: Answer, ours: Answer) => turns.time(() => report(asked, theirs, ours));
      leave(await compare(ask, readOurs, judge).finally(turns.giveBack));
    };
    return {
      leave,
      run,
      async overhear(answer, signal) {
        if (overheard >= maxOverheard) return leave('dropped');
        overheard += 1;
        try {
          const theirs = await receive(answer, maxSeconds).finally(() => {
            overheard -= 1;
          });
          await run(async () => theirs);
        } catch (error) {
          leave(signal.aborted ? 'skipped' : outcomeOf(error));
        }
      },
    };
  };
}

interface Asked extends OwnQuestion {
  readonly route: string;
  readonly client: string;
  /** Names of query parameters that the route reads. */
  readonly known: ReadonlySet<string> | undefined;
}

/** Read before the answer: afterwards the connection may be gone, and what it said of the sender. */
function readAsked(request: FastifyRequest, { clientOf }: ComparisonOptions): Asked {
  const { headers, protocol, host, routeOptions } = request;
  return {
    headers,
    protocol,
    host,
    target: request.url,
    route: routeOptions.url ?? 'none',
    client: clientOf(request),
    known: routeOptions.config.knownParameters,
  };
}

function outcomeOf(error: unknown): Outcome {
  return error instanceof NotComparable ? 'skipped' : 'unreachable';
}

async function compare(
  readTheirs: () => Promise<Answer>,
  readOurs: () => Promise<Answer>,
  judge: (theirs: Answer, ours: Answer) => Outcome,
): Promise<Outcome> {
  let theirs: Answer;
  try {
    theirs = await readTheirs();
  } catch (error) {
    return outcomeOf(error);
  }
  if (theirs.status === 304) return 'skipped';
  try {
    const ours = await readOurs();
    // Busy or without database: that says nothing about its answers.
    if (ours.status === 503) return 'failed';
    refuseLarge(ours.body);
    return judge(theirs, ours);
  } catch (error) {
    return error instanceof NotComparable ? 'skipped' : 'failed';
  }
}

/** Makes what counts and logs how two answers differ. */
function createReport({ legacyUrl, publicUrl, accepted, metrics, log }: ComparisonOptions) {
  const pace = createPacer(false);
  return (asked: Asked, theirs: Answer, ours: Answer): Outcome => {
    const { protocol, host, target, route, client, known } = asked;
    // Both answer under the public name. Links that are the same for the client are no difference,
    // whatever either side takes for its base.
    const base = `${protocol}://${host}`;
    const isSame = theirs.body.equals(ours.body);
    const bases = isSame
      ? { theirs: base, ours: base }
      : { theirs: [base, publicUrl ?? base], ours: publicUrl ?? base };
    const found = compareAnswers({ method: 'GET', target }, theirs, ours, bases);
    if (found.length === 0) return 'same';
    const different = found.filter((difference) => !isAccepted(accepted, difference));
    const kindsOf = (differences: typeof found) => new Set(differences.map(({ kind }) => kind));
    for (const kind of kindsOf(different)) {
      metrics.countDifference({ kind, route, client, accepted: false });
    }
    for (const kind of kindsOf(found.filter((difference) => !different.includes(difference)))) {
      metrics.countDifference({ kind, route, client, accepted: true });
    }
    if (different.length === 0) return 'accepted';
    const shown = showTarget(target, known);
    pace(log, (leftOut) =>
      log.warn(
        {
          theirs: `${legacyUrl}${shown}`.slice(0, maxAddress),
          ours: `${publicUrl ?? base}${shown}`.slice(0, maxAddress),
          differences: different
            .slice(0, maxShown)
            .map(({ kind, where }) => (where === undefined ? kind : `${kind} ${where}`)),
          client,
          leftOut,
        },
        'answers differ',
      ),
    );
    return 'different';
  };
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
