// LEGACY_MODE: who answers a request of `/api/`, the old service or this gateway.
import { createHash, randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../config.ts';
import { HttpError, writesOff } from '../../errors.ts';
import { groupAddress } from '../../http/client-address.ts';
import { originHeaders } from '../../http/cors.ts';
import { requestIdHeader, securityHeaders } from '../../http/headers.ts';
import { encodeJson } from '../../http/json.ts';
import { disconnectSignalOf, type Shutdown } from '../../http/server/connections.ts';
import type { Metrics } from '../../observability/metrics.ts';
import { type DeprecationConfig, deprecationHeaders, exposeAlso } from '../../rest/deprecation.ts';
import { acceptedOf } from '../compare/difference.ts';
import { type Compared, Comparisons, conditions, receive } from './comparisons.ts';
import { isBelowApi, loopHeader, servedByHeader, toLegacyHeaders } from './forwarded-headers.ts';
import { createLegacyMetrics, type LegacyMetrics } from './metrics.ts';
import {
  createUpstream,
  type Forwarding,
  forward,
  hasBody,
  legacyUnreachable,
  pairsOf,
  type Upstream,
} from './upstream.ts';

type LegacyKey = Extract<keyof Config, `legacy${string}`>;

interface LegacyOptions {
  readonly config: DeprecationConfig & Pick<Config, LegacyKey | 'corsOrigins' | 'writes'>;
  readonly metrics: Metrics | undefined;
  readonly shutdown: Shutdown | undefined;
  readonly clientOf: (request: FastifyRequest) => string;
  /** Undefined: requests to the old service are in no trace. */
  readonly traceUpstream: ((upstream: Upstream) => Upstream) | undefined;
}

/** The request has been here before. */
const legacyLoop = new HttpError(
  508,
  'LEGACY_LOOP',
  'The old service is this gateway itself: set LEGACY_URL to the address of the old service.',
);

/** Milliseconds that a request may take to arrive that is only passed on: it may be a large upload. */
const uploadTimeout = 3_600_000;

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** To be called before any hook that changes answers: those of the old service leave as they are. */
export function serveLegacy(app: FastifyInstance, options: LegacyOptions): Legacy {
  const legacy = new Legacy(app, options);
  const isPassing = options.config.legacyMode.kind !== 'mirror';
  const ownTimeout = app.server.requestTimeout;
  if (isPassing) app.server.requestTimeout = uploadTimeout;

  /** What is not passed on has the usual time to arrive, and the usual answer when it is over. */
  const limitArrival = ({ raw }: FastifyRequest): void => {
    const timer = setTimeout(() => {
      const error = Object.assign(new Error('too slow'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      if (!raw.complete) app.server.emit('clientError', error, raw.socket);
    }, ownTimeout).unref();
    raw.once('close', () => clearTimeout(timer));
  };

  app.addHook('onRequest', (request, reply, done) => {
    if (legacy.take(request, reply)) return;
    if (isPassing && hasBody(request.headers)) limitArrival(request);
    if (isApi(request)) legacy.compareLater(request, reply);
    done();
  });
  app.addHook('preClose', async () => legacy.closing.abort());
  app.addHook('onClose', () => legacy.close());
  return legacy;
}

export class Legacy {
  readonly #config: LegacyOptions['config'];
  readonly #forwarding: Forwarding;
  readonly #metrics: LegacyMetrics;
  readonly #comparisons: Comparisons;
  readonly closing = new AbortController();
  readonly #isPassing: boolean;

  constructor(
    private readonly app: FastifyInstance,
    options: LegacyOptions,
  ) {
    const { config, metrics, shutdown, clientOf, traceUpstream = (untraced) => untraced } = options;
    const { legacyUrl = '', legacyTimeout, legacySample: sample, legacyAccept, publicUrl } = config;
    this.#config = config;
    this.#isPassing = config.legacyMode.kind !== 'mirror';
    this.#forwarding = {
      upstream: traceUpstream(createUpstream(legacyUrl, legacyTimeout)),
      gateway: `outfit-gateway-${randomBytes(6).toString('hex')}`,
      isClosing: () => shutdown?.isClosing ?? false,
    };
    this.#metrics = createLegacyMetrics(metrics?.registry);
    const accepted = acceptedOf(legacyAccept);
    this.#comparisons = new Comparisons({
      ...{ sample, accepted, legacyUrl, publicUrl, clientOf },
      metrics: this.#metrics,
      log: app.log,
    });
  }

  /** @param serve adds the legacy paths of this gateway, with which the answers of the old service are compared */
  compareWith(serve: (app: FastifyInstance) => Promise<void>): Promise<void> {
    return this.#comparisons.compareWith(serve);
  }

  /** Answers a request that the old service is to answer, or that is refused; or else false. */
  take(request: FastifyRequest, reply: FastifyReply): boolean {
    return this.#take(request, reply, this.#isForLegacy(request));
  }

  /** The same for a request that no route can be found for. */
  takeUnroutable(request: FastifyRequest, reply: FastifyReply): boolean {
    reply.header(requestIdHeader, request.id);
    const { url } = request;
    const isForLegacy = url.startsWith('/api/') && isBelowApi(url);
    return this.#take(request, reply, this.#isPassing && isForLegacy, true);
  }

  /** After the client has its answer, the old service is asked for its own. */
  compareLater(request: FastifyRequest, reply: FastifyReply): void {
    const asked = this.#comparisons.choose(request);
    if (!asked) return;
    const { upstream, gateway } = this.#forwarding;
    const { signal } = this.closing;
    const headers = pairsOf(toLegacyHeaders(request, gateway))
      .filter(([name]) => !conditions.has(name.toLowerCase()))
      .flat();
    const question = { method: 'GET', target: request.url, headers, signal };
    reply.raw.once('close', () =>
      this.#comparisons.run(asked, async () =>
        receive(await this.#measure(signal, () => upstream.open(question))),
      ),
    );
  }

  async close(): Promise<void> {
    this.#forwarding.upstream.close();
    await this.#comparisons.close();
  }

  #take(
    request: FastifyRequest,
    reply: FastifyReply,
    isForLegacy: boolean,
    isUnroutable = false,
  ): boolean {
    const { gateway } = this.#forwarding;
    const isLoop = String(request.headers[loopHeader] ?? '').includes(gateway);
    // WRITES=off holds for the old service too: it is what the last import reads.
    const mayPass = this.#config.writes || safeMethods.has(request.method);
    if (isForLegacy && !isLoop && mayPass) {
      this.#answer(request, reply, isUnroutable ? undefined : this.#comparisons.choose(request));
      return true;
    }
    reply.header(servedByHeader, 'gateway');
    if (!isLoop && !isForLegacy) return false;
    this.#sendError(request, reply, isLoop ? legacyLoop : writesOff());
    return true;
  }

  #isForLegacy(request: FastifyRequest): boolean {
    if (!this.#isPassing || !isApi(request)) return false;
    // What is not read, and paths that this gateway does not have, are all of the old service.
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const isOurs = isRead && request.routeOptions.url !== '/api/*';
    const share = isOurs ? this.#config.legacyMode.percent : 0;
    return !(share > 0 && isAmong(share, request));
  }

  async #answer(
    request: FastifyRequest,
    reply: FastifyReply,
    asked: Compared | undefined,
  ): Promise<void> {
    const signal = disconnectSignalOf(request.raw.socket);
    try {
      await this.#measure(signal, () =>
        forward(this.#forwarding, request, reply, (answer) => {
          if (asked) this.#comparisons.overhear(asked, answer, signal);
        }),
      );
    } catch (error) {
      if (asked) this.#comparisons.count(signal.aborted ? 'skipped' : 'unreachable');
      if (signal.aborted || reply.raw.destroyed) reply.hijack();
      else {
        const httpError = legacyUnreachable(error);
        this.#sendError(request, reply.header(servedByHeader, 'legacy'), httpError);
      }
    }
  }

  /** @param signal aborted when nobody waits any more, which is no failure */
  async #measure<Result>(signal: AbortSignal, ask: () => Promise<Result>): Promise<Result> {
    const begun = performance.now();
    let result = 'answered';
    try {
      return await ask();
    } catch (error) {
      result = signal.aborted ? 'left' : legacyUnreachable(error).code;
      throw error;
    } finally {
      this.#metrics.countRequest(result, (performance.now() - begun) / 1000);
    }
  }

  /** In the shape of the other errors of these paths, readable for a page of one of CORS_ORIGINS. */
  #sendError(request: FastifyRequest, reply: FastifyReply, error: HttpError): void {
    this.app.logHttpError(request.log, error);
    const ends = deprecationHeaders(this.#config);
    const readable = { ...originHeaders(request, this.#config.corsOrigins) };
    const exposed = readable['Access-Control-Expose-Headers'];
    if (exposed && ends) readable['Access-Control-Expose-Headers'] = exposeAlso(exposed, ends);
    reply
      .code(error.status)
      // No hook has set them: it comes before all of them.
      .headers({ ...securityHeaders, ...ends, ...readable, ...error.headers })
      .header('Content-Type', 'application/json')
      .send(encodeJson({ detail: error.message }));
  }
}

/** By the route, since a path may be written in many ways; what leads elsewhere there is unknown. */
function isApi(request: FastifyRequest): boolean {
  return !!request.routeOptions.url?.startsWith('/api/') && isBelowApi(request.url);
}

/** Whether a client is one of so many percent: the same in every process, and with more percent the same and more. */
export function isAmong(percent: number, request: FastifyRequest): boolean {
  const digest = createHash('sha256').update(nameClient(request)).digest();
  return (digest.readUInt32BE() / 2 ** 32) * 100 < percent;
}

/** The user of a token stays when it is renewed; unverified, since only who answers depends on it. */
function nameClient({ headers: { authorization }, ip }: FastifyRequest): string {
  if (authorization === undefined) return `address ${groupAddress(ip)}`;
  const payload = /^bearer[ \t]+[\w-]+\.([\w-]+)\./i.exec(authorization)?.[1];
  return `user ${(payload && readSubject(payload)) ?? authorization}`;
}

function readSubject(payload: string): string | undefined {
  try {
    const { sub } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub?: unknown };
    return sub === undefined ? undefined : String(sub);
  } catch {
    return undefined;
  }
}
