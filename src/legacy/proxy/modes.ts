// LEGACY_MODE: whether the old service or this gateway answers a request below LEGACY_PATHS.
import { createHash, randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../config/config.ts';
import { HttpError, writesOff } from '../../errors.ts';
import { type CorsConfig, corsHeaders } from '../../http/cors.ts';
import {
  type DeprecationConfig,
  deprecationHeaders,
  hasBody,
  requestIdHeader,
  safeMethods,
  securityHeaders,
} from '../../http/headers.ts';
import { encodeJson } from '../../http/representation.ts';
import { disconnectSignalOf, type Shutdown } from '../../http/server/connections.ts';
import { sanitizeName } from '../../observability/clients.ts';
import type { Metrics } from '../../observability/metrics.ts';
import { acceptedOf } from '../compare/difference.ts';
import { bufferAnswer } from './answer-buffer.ts';
import { type Compared, Comparisons, conditionalHeaders } from './comparisons.ts';
import {
  isBelow,
  isPathPattern,
  loopHeader,
  mayBeBelow,
  servedByHeader,
  toLegacyHeaders,
} from './forwarded-headers.ts';
import { LegacyMetrics } from './metrics.ts';
import { OwnWrites, type RecordStore } from './own-writes.ts';
import {
  type Forwarding,
  forward,
  legacyUnreachable,
  type ObserveUpstream,
  pairsOf,
  Upstream,
} from './upstream.ts';

type LegacyKey = Extract<keyof Config, `legacy${string}`>;

/** What admission knows of the credentials of a request. */
interface Credentials {
  /** The setting that is missing to verify them here; undefined: none is. */
  findMissingSetting(request: FastifyRequest): string | undefined;
  clientKeyOf(request: FastifyRequest): string;
}

interface LegacyOptions {
  readonly config: DeprecationConfig & CorsConfig & Pick<Config, LegacyKey | 'writes'>;
  /** The REST paths of this gateway. */
  readonly routes: readonly { readonly path: string; readonly envelope: unknown }[];
  readonly credentials: Credentials;
  /** Where records are saved that were written in the old service; undefined once this gateway takes the writes. */
  readonly records: RecordStore | undefined;
  readonly metrics: Metrics | undefined;
  readonly shutdown: Shutdown | undefined;
  /** Undefined: requests to the old service are not traced. */
  readonly observe: ObserveUpstream | undefined;
}

/** The request was forwarded by this gateway before. */
const legacyLoop = new HttpError(
  508,
  'LEGACY_LOOP',
  'The old service is this gateway itself: set LEGACY_URL to the address of the old service.',
);

const webSocketRefused = () =>
  new HttpError(
    501,
    'UPGRADE_NOT_SUPPORTED',
    'WebSocket connections are not forwarded: open them at the address of the old service.',
  );

const ownedHere = (method: string, path: string) =>
  new HttpError(
    405,
    'METHOD_NOT_ALLOWED',
    `Method "${method}" not allowed: this service owns ${path} now. POST to ${path} creates, mutations at /graphql change and delete.`,
    { Allow: 'GET, HEAD, OPTIONS' },
  );

/** Milliseconds that a forwarded request may take to arrive: it may be a large upload. */
const uploadTimeout = 3_600_000;

/** Call it before any hook that changes answers: forwarded answers pass unchanged. */
export function serveLegacy(app: FastifyInstance, options: LegacyOptions): Legacy {
  const legacy = new Legacy(app, options);
  const compares = options.config.legacyMode.kind !== 'fallback';
  const ownTimeout = app.server.requestTimeout;
  app.server.requestTimeout = uploadTimeout;

  /** Applies the usual timeout to requests that are not forwarded. */
  const limitArrival = ({ raw }: FastifyRequest): void => {
    // Injected requests arrive at once, and have none.
    if (!(raw.socket instanceof Socket)) return;
    const timer = setTimeout(() => {
      const error = Object.assign(new Error('too slow'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      if (!raw.complete) app.server.emit('clientError', error, raw.socket);
    }, ownTimeout).unref();
    raw.once('close', () => clearTimeout(timer));
  };

  app.addHook('onRequest', (request, reply, done) => {
    if (legacy.intercept(request, reply)) return;
    if (hasBody(request.headers)) limitArrival(request);
    if (compares && legacy.isServedApi(request)) legacy.compareAfterAnswer(request, reply);
    done();
  });
  app.addHook('preClose', async () => legacy.closing.abort());
  app.addHook('onClose', () => legacy.close());
  return legacy;
}

export class Legacy {
  readonly #config: LegacyOptions['config'];
  readonly #credentials: Credentials;
  /** Paths whose records this gateway owns once it takes the writes, such as `/api/outfits/`. */
  readonly #ownPaths: readonly string[];
  readonly #restPaths: ReadonlySet<string>;
  /** Of LEGACY_PATHS: paths below the own ones that only the old service has. */
  readonly #patterns: readonly string[];
  readonly #missingSettings = new Set<string>();
  readonly #forwarding: Forwarding;
  readonly #metrics: LegacyMetrics;
  readonly #comparisons: Comparisons;
  readonly #ownWrites: OwnWrites | undefined;
  readonly closing = new AbortController();
  /** Whether the old service owns the listing: it gets all writes, and the reads outside of the canary. */
  readonly #isLegacyOwner: boolean;

  constructor(
    private readonly app: FastifyInstance,
    options: LegacyOptions,
  ) {
    const { config, metrics, shutdown, observe } = options;
    const { legacyUrl = '', legacyHost, legacyTimeout, legacyAccept, publicUrl } = config;
    this.#config = config;
    this.#credentials = options.credentials;
    const { routes } = options;
    this.#ownPaths = routes.filter(({ envelope }) => envelope).map(({ path }) => path);
    this.#patterns = config.legacyPaths.filter(isPathPattern);
    this.#restPaths = new Set(routes.flatMap(({ path }) => [path, path.replace(/\/$/, '')]));
    const { kind } = config.legacyMode;
    this.#isLegacyOwner = kind === 'shadow' || kind === 'canary';
    this.#forwarding = {
      upstream: new Upstream(legacyUrl, legacyTimeout, legacyHost, observe),
      gateway: `outfit-gateway-${randomBytes(6).toString('hex')}`,
      legacyHost,
      isClosing: () => shutdown?.isClosing ?? false,
    };
    this.#ownWrites =
      options.records && new OwnWrites(this.#forwarding, this.#ownPaths, options.records, app.log);
    this.#metrics = new LegacyMetrics(metrics?.registry);
    const accepted = acceptedOf(legacyAccept);
    this.#comparisons = new Comparisons({
      ...{ sample: config.legacySample, recheck: config.legacyRecheck, accepted },
      ...{ isOwner: !this.#isLegacyOwner, legacyUrl, publicUrl },
      metrics: this.#metrics,
      log: app.log,
    });
  }

  /** @param serve adds the legacy paths of this gateway, with which the answers of the old service are compared */
  compareWith(serve: (app: FastifyInstance) => Promise<void>): Promise<void> {
    return this.#comparisons.compareWith(serve);
  }

  /** Forwards or refuses a request; false: this gateway answers it. */
  intercept(request: FastifyRequest, reply: FastifyReply): boolean {
    return this.#forwardOrRefuse(request, reply, this.#isForLegacy(request));
  }

  /** Whether a REST path of this gateway is requested, or one that is below `/api/` beside them. */
  isServedApi(request: FastifyRequest): boolean {
    const { url = '' } = request.routeOptions;
    if (!isServed(request)) return false;
    return this.#restPaths.has(url) || (url.startsWith('/api/') && isBelow(request.url, ['/api/']));
  }

  /** The same for a request whose target the router cannot decode. */
  interceptUnroutable(request: FastifyRequest, reply: FastifyReply): boolean {
    reply.header(requestIdHeader, request.id);
    const isForLegacy = isBelow(request.url, this.#config.legacyPaths);
    return this.#forwardOrRefuse(request, reply, isForLegacy, true);
  }

  /** Requests the answer of the old service once the client has its own, and compares both. */
  compareAfterAnswer(request: FastifyRequest, reply: FastifyReply): void {
    const compared = this.#sample(request);
    if (compared) reply.raw.once('close', () => this.#comparisons.compare(compared));
  }

  #sample(request: FastifyRequest): Compared | undefined {
    const sampled = this.#comparisons.sample(request);
    if (!sampled) return undefined;
    const { upstream, gateway, legacyHost } = this.#forwarding;
    const { signal } = this.closing;
    const headers = pairsOf(toLegacyHeaders(request, gateway, legacyHost))
      .filter(([name]) => !conditionalHeaders.has(name.toLowerCase()))
      .flat();
    const sent = { method: sampled.method, target: request.url, headers, signal };
    const ask = () => this.#measure(signal, () => upstream.open(sent));
    return { request: sampled, readAgain: async () => bufferAnswer(await ask()) };
  }

  async close(): Promise<void> {
    this.#forwarding.upstream.close();
    await this.#comparisons.close();
  }

  #forwardOrRefuse(
    request: FastifyRequest,
    reply: FastifyReply,
    isForLegacy: boolean,
    isUnroutable = false,
  ): boolean {
    const { gateway } = this.#forwarding;
    const isLoop = String(request.headers[loopHeader] ?? '').includes(gateway);
    const isChecked = isForLegacy || this.#isOwnRecord(request);
    const refusal = isLoop ? legacyLoop : isChecked ? this.#findRefusal(request) : undefined;
    if (isForLegacy && !refusal) {
      const isServed = !isUnroutable && this.isServedApi(request);
      if (!isServed) request.forwardedPath = patternOf(request.url);
      void this.#forward(request, reply, isServed ? this.#sample(request) : undefined);
      return true;
    }
    reply.header(servedByHeader, 'gateway');
    if (!refusal) return false;
    this.#sendError(request, reply, refusal);
    return true;
  }

  /** Why a request for the old service is not forwarded; undefined: it is. */
  #findRefusal({ method, url, headers }: FastifyRequest): HttpError | undefined {
    if (/\bwebsocket\b/i.test(headers.upgrade ?? '')) return webSocketRefused();
    if (safeMethods.has(method) && method !== 'TRACE') return undefined;
    // WRITES=off holds for the old service too: the last import reads from it.
    if (!this.#config.writes) return writesOff();
    if (this.#isLegacyOwner || isBelow(url, this.#patterns)) return undefined;
    const own = this.#ownPaths.find((path) => mayBeBelow(url, path));
    return own === undefined ? undefined : ownedHere(method, own);
  }

  /** One record below an own path: only read here, so that a write gets the sentence that says what to use. */
  #isOwnRecord({ routeOptions: { url = '' } }: FastifyRequest): boolean {
    if (this.#isLegacyOwner) return false;
    return this.#ownPaths.some((path) => url !== path && isBelow(url, [path]));
  }

  #isForLegacy(request: FastifyRequest): boolean {
    if (!isServed(request)) return isBelow(request.url, this.#config.legacyPaths);
    if (!this.#isLegacyOwner || !this.isServedApi(request)) return false;
    const isOurs = request.method === 'GET' || request.method === 'HEAD';
    const share = isOurs ? this.#config.legacyMode.percent : 0;
    const isOwnClient = share > 0 && isInCanary(share, this.#credentials.clientKeyOf(request));
    return !isOwnClient || this.#isUnverifiable(request);
  }

  /** Whether the old service must answer, since only it can verify the credentials. The setting is logged once. */
  #isUnverifiable(request: FastifyRequest): boolean {
    const missing = this.#credentials.findMissingSetting(request);
    if (missing === undefined) return false;
    if (!this.#missingSettings.has(missing)) {
      this.#missingSettings.add(missing);
      const sentence = `requests with a credential that cannot be verified here go to the old service: set ${missing}`;
      this.app.log.warn(sentence);
    }
    return true;
  }

  async #forward(
    request: FastifyRequest,
    reply: FastifyReply,
    sampled: Compared | undefined,
  ): Promise<void> {
    const signal = disconnectSignalOf(request.raw.socket);
    try {
      await this.#measure(signal, () =>
        forward(
          this.#forwarding,
          request,
          reply,
          (answer) => {
            if (sampled) void this.#comparisons.compareForwarded(sampled, answer, signal);
          },
          async (answer) => (await this.#ownWrites?.follow(request, answer)) ?? [],
        ),
      );
    } catch (error) {
      if (sampled) this.#comparisons.count(signal.aborted ? 'skipped' : 'unreachable');
      if (signal.aborted || reply.raw.destroyed) reply.hijack();
      else {
        const httpError = legacyUnreachable(error);
        this.#sendError(request, reply.header(servedByHeader, 'legacy'), httpError);
      }
    }
  }

  /** @param signal aborted when the client leaves, which is no failure */
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

  /** Sends an error in the shape of the REST paths, with the CORS headers of CORS_ORIGINS. */
  #sendError(request: FastifyRequest, reply: FastifyReply, error: HttpError): void {
    this.app.logHttpError(request.log, error);
    const ends = deprecationHeaders(this.#config);
    const readable = corsHeaders(request, this.#config);
    reply
      .code(error.status)
      // The hooks that set them run after this one.
      .headers({ ...securityHeaders, ...ends, ...readable, ...error.headers })
      .header('Content-Type', 'application/json')
      .send(encodeJson({ detail: error.message }));
  }
}

/** Decided by the route, since a path has many spellings. `/api/*` answers 404. */
function isServed({ is404, params, routeOptions }: FastifyRequest): boolean {
  const { config, url } = routeOptions;
  const hasPath = config.hasPath?.(params as Record<string, string>) ?? true;
  return !is404 && url !== '/api/*' && hasPath;
}

/** The path with placeholders for ids and media files, so that requests for many records count as one path. */
function patternOf(target: string): string {
  const path = target.split('?', 1)[0] ?? '';
  const ids = /^(?:\d+|[\da-f]{8}-[\da-f-]{27}|[\da-f]{16,})$/i;
  const file = /^.+\.(avif|gif|jpe?g|mov|mp4|png|svg|webm|webp)$/i;
  const segments = path
    .split('/')
    .map((segment) => (ids.test(segment) ? ':id' : segment.replace(file, ':file.$1')));
  return sanitizeName(segments.join('/'));
}

/** Canary by hash of the client: the same in every process; a higher percentage keeps all clients of a lower one. */
export function isInCanary(percent: number, clientKey: string): boolean {
  const digest = createHash('sha256').update(clientKey).digest();
  return (digest.readUInt32BE() / 2 ** 32) * 100 < percent;
}
