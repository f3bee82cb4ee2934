// LEGACY_MODE: who answers a request of `/api/`, the old service or this gateway.
import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config.ts';
import { type HttpError, writesOff } from '../errors.ts';
import { leavingSignal, type Shutdown } from '../http/connections.ts';
import { originHeaders } from '../http/cors.ts';
import { requestIdHeader, securityHeaders } from '../http/headers.ts';
import { encodeJson } from '../http/json.ts';
import type { Metrics } from '../observability/metrics.ts';
import { type DeprecationConfig, deprecationHeaders, exposeAlso } from '../rest/deprecation.ts';
import { isAmong, shareOf } from './canary.ts';
import { type Comparison, createComparisons } from './comparisons.ts';
import { legacyLoop, legacyUnreachable } from './errors.ts';
import { endSilence, forward, hasBody, isBelowApi } from './forward.ts';
import { loopHeader, servedByHeader, toLegacyHeaders } from './forwarded-headers.ts';
import { createLegacyMetrics } from './legacy-metrics.ts';
import { conditions, createOwnAnswers, type OwnAnswers } from './own-answers.ts';
import { receive } from './received.ts';
import { createUpstream, pairsOf, type Upstream } from './upstream.ts';

export interface LegacyOptions {
  readonly config: DeprecationConfig &
    Pick<
      Config,
      | 'corsOrigins'
      | 'legacyAccept'
      | 'legacyMode'
      | 'legacySample'
      | 'legacyTimeout'
      | 'legacyUrl'
      | 'writes'
    >;
  readonly metrics: Metrics | undefined;
  readonly shutdown: Shutdown | undefined;
  /** Who sends a request: one of few names, for the metrics. */
  readonly clientOf: (request: FastifyRequest) => string;
  /** Undefined: requests to the old service are in no trace. */
  readonly traceUpstream: ((upstream: Upstream) => Upstream) | undefined;
}

export interface Legacy {
  /** Takes the legacy paths of this gateway, with which the answers of the old service are compared. */
  compareWith(serve: (app: FastifyInstance) => Promise<void>): Promise<void>;
  /** Answers a request that no route can be found for, if the old service is to; or else false. */
  takeUnroutable(request: FastifyRequest, reply: FastifyReply): boolean;
}

/** Milliseconds that a request may take to arrive that is only passed on: it may be a large upload. */
const uploadTimeout = 3_600_000;

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/**
 * Puts the old service behind `app`, as LEGACY_MODE says; to be called before any hook that changes
 * answers, since those of the old service leave as they are.
 */
export function serveLegacy(app: FastifyInstance, options: LegacyOptions): Legacy {
  const { config, shutdown, clientOf, traceUpstream = (untraced) => untraced } = options;
  const { legacyUrl = '', legacyMode, legacyTimeout: timeout, legacySample: sample } = config;
  const upstream = traceUpstream(createUpstream(legacyUrl, timeout));
  const gateway = `outfit-gateway-${randomBytes(6).toString('hex')}`;
  const isClosing = () => shutdown?.isClosing ?? false;
  const forwarding = { upstream, timeout, gateway, isClosing };
  const metrics = createLegacyMetrics(options.metrics?.registry);
  const closing = new AbortController();
  const ends = deprecationHeaders(config);
  let own: OwnAnswers | undefined;
  const ownTimeout = app.server.requestTimeout;
  if (legacyMode.kind !== 'mirror') app.server.requestTimeout = uploadTimeout;
  const compareLater = createComparisons({
    sample,
    accepted: new Set(config.legacyAccept),
    legacyUrl,
    publicUrl: config.publicUrl,
    own: () => own,
    metrics,
    clientOf,
    log: app.log,
  });

  /** @param signal aborted when nobody waits any more, which is no failure */
  const askLegacy = async <Result>(
    signal: AbortSignal,
    ask: () => Promise<Result>,
  ): Promise<Result> => {
    const begun = performance.now();
    const count = (result: string) => {
      metrics.countRequest(result, (performance.now() - begun) / 1000);
    };
    try {
      const result = await ask();
      count('answered');
      return result;
    } catch (error) {
      const httpError = legacyUnreachable(error);
      count(signal.aborted ? 'left' : httpError.code);
      throw httpError;
    }
  };

  const answerByLegacy = async (
    request: FastifyRequest,
    reply: FastifyReply,
    comparison?: Comparison,
  ): Promise<void> => {
    const signal = leavingSignal(request.raw.socket);
    try {
      await askLegacy(signal, () =>
        forward(forwarding, request, reply, (answer) => comparison?.overhear(answer, signal)),
      );
    } catch (error) {
      comparison?.leave(signal.aborted ? 'skipped' : 'unreachable');
      // Nobody is told.
      if (signal.aborted || reply.raw.destroyed) reply.hijack();
      else sendError(request, reply.header(servedByHeader, 'legacy'), legacyUnreachable(error));
    }
  };

  /** After the client has its answer, the old service is asked for its own. */
  const compareWithLegacy = (request: FastifyRequest, reply: FastifyReply): void => {
    const comparison = compareLater(request);
    if (!comparison) return;
    const headers = pairsOf(toLegacyHeaders(request, gateway))
      .filter(([name]) => !conditions.has(name.toLowerCase()))
      .flat();
    reply.raw.once('close', () =>
      comparison.run(async () => {
        const answer = await askLegacy(closing.signal, () =>
          upstream.open({
            method: 'GET',
            target: request.url,
            headers,
            signal: closing.signal,
          }),
        );
        endSilence(answer, timeout);
        return receive(answer);
      }),
    );
  };

  app.addHook('onRequest', (request, reply, done) => {
    if (isLoop(request)) {
      refuse(request, reply, legacyLoop());
    } else if (isForLegacy(request)) {
      if (mayPass(request)) answerByLegacy(request, reply, compareLater(request));
      else refuse(request, reply, writesOff());
    } else {
      reply.header(servedByHeader, 'gateway');
      if (legacyMode.kind !== 'mirror' && hasBody(request.headers)) limitArrival(request);
      if (isApi(request)) compareWithLegacy(request, reply);
      done();
    }
  });
  app.addHook('preClose', async () => closing.abort());
  app.addHook('onClose', async () => {
    upstream.close();
    await own?.close();
  });

  /** What is not passed on has the usual time to arrive, and the usual answer when it is over. */
  function limitArrival({ raw }: FastifyRequest): void {
    const timer = setTimeout(() => {
      const error = Object.assign(new Error('too slow'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      if (!raw.complete) app.server.emit('clientError', error, raw.socket);
    }, ownTimeout).unref();
    raw.once('close', () => clearTimeout(timer));
  }

  function isLoop({ headers }: FastifyRequest): boolean {
    return String(headers[loopHeader] ?? '').includes(gateway);
  }

  /** WRITES=off holds for the old service too: it is what the last import reads. */
  function mayPass({ method }: FastifyRequest): boolean {
    return config.writes || safeMethods.has(method);
  }

  function refuse(request: FastifyRequest, reply: FastifyReply, error: HttpError): true {
    sendError(request, reply.header(servedByHeader, 'gateway'), error);
    return true;
  }

  /** Lets a page of another origin, if it is one of CORS_ORIGINS, read what the answer is. */
  function readableBy(request: FastifyRequest): Record<string, string> {
    const headers = originHeaders(request, config.corsOrigins);
    if (!headers || !ends) return { ...headers };
    const exposed = exposeAlso(headers['Access-Control-Expose-Headers'], ends);
    return { ...headers, 'Access-Control-Expose-Headers': exposed };
  }

  /** In the shape of the other errors of these paths. */
  function sendError(request: FastifyRequest, reply: FastifyReply, error: HttpError): void {
    app.logHttpError(request.log, error);
    reply
      .code(error.status)
      // No hook has set them: it comes before all of them.
      .headers({ ...securityHeaders, ...ends, ...readableBy(request), ...error.headers })
      .header('Content-Type', 'application/json')
      .send(encodeJson({ detail: error.message }));
  }

  function isForLegacy(request: FastifyRequest): boolean {
    if (legacyMode.kind === 'mirror' || !isApi(request)) return false;
    const share = shareOf(legacyMode, isKnown(request) ? request.method : '');
    return !(share > 0 && isAmong(share, request));
  }

  return {
    async compareWith(serve) {
      own = await createOwnAnswers(serve);
    },
    takeUnroutable(request, reply) {
      const target = request.url;
      reply.header(requestIdHeader, request.id);
      if (isLoop(request)) return refuse(request, reply, legacyLoop());
      if (legacyMode.kind === 'mirror' || !target.startsWith('/api/') || !isBelowApi(target)) {
        reply.header(servedByHeader, 'gateway');
        return false;
      }
      if (!mayPass(request)) return refuse(request, reply, writesOff());
      answerByLegacy(request, reply);
      return true;
    },
  };
}

/** Whether this gateway has such a path too. */
function isKnown({ routeOptions: { url } }: FastifyRequest): boolean {
  return url !== undefined && url !== '/api/*';
}

/** By the route, since a path may be written in many ways; what leads elsewhere there is unknown. */
function isApi(request: FastifyRequest): boolean {
  return !!request.routeOptions.url?.startsWith('/api/') && isBelowApi(request.url);
}
