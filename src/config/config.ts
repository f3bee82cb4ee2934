// Configuration: parses and validates environment variables. Pure: text in, `Config` or a `ConfigError` out.
import type { z } from 'zod';
import {
  addresses,
  baseUrl,
  collectorUrl,
  cookieNames,
  decimal,
  differences,
  duration,
  headerNames,
  host,
  hostAndPort,
  httpUrl,
  legacyMode,
  legacyUrl,
  moment,
  names,
  oneOf,
  onOrOff,
  origins,
  pathPrefixes,
  port,
  postgresUrl,
  postgresUrls,
  rate,
  secrets,
  signingSecret,
  size,
  text,
  tracesUrl,
  webhookUrl,
  wholeNumber,
} from './values.ts';

/** An invalid setting. The message is one sentence with the variable, its value and its range. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export type Environment = Readonly<Record<string, string | undefined>>;

interface Setting<Value> {
  readonly name: string;
  readonly schema: z.ZodType<Value, string>;
  readonly whenUnset: Value;
  readonly whenUnsetText: string;
  heading?: string;
}

function setting<Value, const Default extends Value | undefined>(
  name: string,
  schema: z.ZodType<Value, string>,
  whenUnset: Default,
  whenUnsetText = describeDefault(whenUnset),
) {
  return { name, schema, whenUnset, whenUnsetText } as Setting<Value | Extract<Default, undefined>>;
}

/** A setting with a unit; its default is written as in .env. */
function quantitySetting(name: string, schema: z.ZodType<number, string>, whenUnset: string) {
  return setting(name, schema, schema.parse(whenUnset), whenUnset);
}

function describeDefault(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return value === undefined || (Array.isArray(value) && value.length === 0)
    ? 'none'
    : String(value);
}

function group<Group extends Record<string, Setting<unknown>>>(heading: string, members: Group) {
  for (const member of Object.values(members)) member.heading = heading;
  return members;
}

// One line for each setting. A new one is also documented in .env.example and in the table of docs/settings.md.
const settings = {
  ...group('Address', {
    host: setting('HOST', host, 'localhost'),
    port: setting('PORT', port, 4000),
    publicUrl: setting('PUBLIC_URL', baseUrl, undefined),
    trustProxy: setting('TRUST_PROXY', addresses, []),
  }),
  ...group('Database', {
    databaseUrl: setting('DATABASE_URL', postgresUrl, undefined),
    databasePoolMax: setting('DATABASE_POOL_MAX', wholeNumber(1, 1000), 10),
    databaseReadUrls: setting('DATABASE_READ_URLS', postgresUrls, []),
    readMaxStaleness: quantitySetting('READ_MAX_STALENESS', duration('0', '10m'), '0'),
    databasePooler: setting(
      'DATABASE_POOLER',
      oneOf('session', 'transaction'),
      undefined,
      'session; transaction with pgbouncer=true in DATABASE_URL',
    ),
    dataDir: setting('DATA_DIR', text, '.data'),
    firstId: setting('FIRST_ID', wholeNumber(1, 2_000_000_000), undefined),
    seed: setting('SEED', oneOf('demo', 'none'), undefined, 'demo; none on PostgreSQL'),
  }),
  ...group('Listing', {
    pageSize: setting('PAGE_SIZE', wholeNumber(1, 1000), 20),
    privateOutfits: setting('PRIVATE_OUTFITS', oneOf('listed', 'owner'), 'listed'),
    likers: setting('LIKERS', oneOf('private', 'public'), 'private'),
    mediaUrl: setting(
      'MEDIA_URL',
      baseUrl,
      undefined,
      'pictures of its own for the demonstration set, else https://media.example.com',
    ),
    videoUrl: setting('VIDEO_URL', baseUrl, 'https://video.example.com'),
    restDocuments: setting('REST_DOCUMENTS', text, undefined),
    restDeprecated: setting('REST_DEPRECATED', moment, undefined),
    restSunset: setting('REST_SUNSET', moment, undefined),
    compression: setting('COMPRESSION', oneOf('graphql', 'all', 'off'), 'graphql'),
    browsable: setting('BROWSABLE', onOrOff, true),
    writes: setting('WRITES', onOrOff, true),
  }),
  ...group('GraphQL', {
    graphqlMaxCost: setting('GRAPHQL_MAX_COST', wholeNumber(1, 1_000_000_000), 3_000),
    graphqlIntrospection: setting('GRAPHQL_INTROSPECTION', onOrOff, true),
    graphiql: setting('GRAPHIQL', onOrOff, true),
    trustedDocuments: setting('TRUSTED_DOCUMENTS', text, undefined),
    trustedDocumentsOnly: setting('TRUSTED_DOCUMENTS_ONLY', onOrOff, false),
  }),
  ...group('Clients', {
    authJwksUrl: setting('AUTH_JWKS_URL', httpUrl, undefined),
    authJwtSecret: setting('AUTH_JWT_SECRET', signingSecret, undefined),
    authIssuer: setting('AUTH_ISSUER', text, undefined),
    authAudience: setting('AUTH_AUDIENCE', text, undefined),
    authUserClaim: setting('AUTH_USER_CLAIM', text, 'sub'),
    authStaffClaim: setting('AUTH_STAFF_CLAIM', text, undefined),
    authWebhookUrl: setting('AUTH_WEBHOOK_URL', webhookUrl, undefined),
    authWebhookTtl: quantitySetting('AUTH_WEBHOOK_TTL', duration('1s', '1h'), '10s'),
    authWebhookStale: quantitySetting('AUTH_WEBHOOK_STALE', duration('0', '1d'), '5m'),
    authCookies: setting('AUTH_COOKIES', cookieNames, []),
    rateLimit: setting('RATE_LIMIT', rate, undefined),
    corsOrigins: setting('CORS_ORIGINS', origins, []),
    corsAllowHeaders: setting('CORS_ALLOW_HEADERS', headerNames, []),
    corsExposeHeaders: setting('CORS_EXPOSE_HEADERS', headerNames, []),
    corsMaxAge: quantitySetting('CORS_MAX_AGE', duration('0', '1d'), '10m'),
  }),
  ...group('Limits', {
    cacheMaxSize: quantitySetting('CACHE_MAX_SIZE', size('0', '1024GiB'), '64MiB'),
    maxConcurrentRequests: setting('MAX_CONCURRENT_REQUESTS', wholeNumber(1, 100_000), 128),
    maxStreams: setting('MAX_STREAMS', wholeNumber(0, 1_000_000), 10_000),
    maxSockets: setting('MAX_SOCKETS', wholeNumber(0, 1_000_000), 10_000),
    requestTimeout: quantitySetting('REQUEST_TIMEOUT', duration('1s', '10m'), '10s'),
    expensiveQueryTimeout: quantitySetting('EXPENSIVE_QUERY_TIMEOUT', duration('1s', '10m'), '2s'),
  }),
  ...group('The old service', {
    legacyUrl: setting('LEGACY_URL', legacyUrl, undefined),
    legacyMode: setting('LEGACY_MODE', legacyMode, { kind: 'off', percent: 100 }, 'off'),
    legacySample: setting('LEGACY_SAMPLE', decimal(0, 100), 10),
    legacyPaths: setting('LEGACY_PATHS', pathPrefixes, ['/api/']),
    legacyHost: setting('LEGACY_HOST', hostAndPort, undefined),
    legacyRecheck: quantitySetting('LEGACY_RECHECK', duration('0', '1h'), '2m'),
    legacyAccept: setting('LEGACY_ACCEPT', differences, []),
    legacyTimeout: quantitySetting('LEGACY_TIMEOUT', duration('1s', '80s'), '30s'),
  }),
  ...group('Log, metrics and traces', {
    logLevel: setting('LOG_LEVEL', oneOf('debug', 'info', 'warn', 'error', 'silent'), 'info'),
    logFormat: setting(
      'LOG_FORMAT',
      oneOf('json', 'pretty'),
      undefined,
      'pretty on a terminal, else json',
    ),
    slowStatement: setting('SLOW_STATEMENT', duration('0', '1h'), undefined),
    metricsPort: setting('METRICS_PORT', port, undefined),
    otelDisabled: setting('OTEL_SDK_DISABLED', text, 'false'),
    tracesExporter: setting('OTEL_TRACES_EXPORTER', names('otlp, console, none'), []),
    otlpEndpoint: setting('OTEL_EXPORTER_OTLP_ENDPOINT', collectorUrl, undefined),
    otlpTracesEndpoint: setting('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', tracesUrl, undefined),
    otlpProtocol: setting('OTEL_EXPORTER_OTLP_PROTOCOL', text, 'http/json'),
    propagators: setting('OTEL_PROPAGATORS', names('tracecontext, baggage, none'), [
      'tracecontext',
      'baggage',
    ]),
  }),
};

export const allSettings: readonly Setting<unknown>[] = Object.values(settings);

type Settings = {
  readonly [Key in keyof typeof settings]: (typeof settings)[Key]['whenUnset'];
};

export interface Config extends Settings {
  /** Content of an empty database; `demo` is the default of the embedded one only. */
  readonly seed: 'demo' | 'none';
  readonly databasePooler: 'session' | 'transaction';
  readonly mediaUrl: string;
  /** Whether MEDIA_URL is set. If not, this process draws the pictures of the demonstration set. */
  readonly hasMediaUrl: boolean;
}

/** An empty variable counts as unset. @throws ConfigError with a line for each invalid variable */
export function readConfig(environment: Environment): Config {
  const problems: string[] = [];
  const entries = Object.entries(settings).map(([key, one]) => {
    try {
      return [key, read(environment, one)];
    } catch (error) {
      problems.push((error as ConfigError).message);
      return [key, undefined];
    }
  });
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const config: Settings = Object.fromEntries(entries);
  if (config.databaseReadUrls.length > 0 && config.databaseUrl === undefined) {
    throw new ConfigError(
      'DATABASE_READ_URLS is set, but DATABASE_URL is not: the embedded database has no standbys, so set DATABASE_URL to their primary server.',
    );
  }
  if (config.authJwksUrl && config.authJwtSecret) {
    throw new ConfigError('AUTH_JWKS_URL and AUTH_JWT_SECRET are both set: keep one of them.');
  }
  if (config.authCookies.length > 0 && config.authWebhookUrl === undefined) {
    throw new ConfigError(
      'AUTH_COOKIES is set, but AUTH_WEBHOOK_URL is not: set it to the address that knows whose cookies they are.',
    );
  }
  if (config.restDeprecated && config.restSunset && config.restSunset < config.restDeprecated) {
    throw new ConfigError(
      'REST_SUNSET is before REST_DEPRECATED: set it to the same or a later day.',
    );
  }
  if (config.legacyMode.kind !== 'off' && config.legacyUrl === undefined) {
    throw new ConfigError(
      `LEGACY_MODE is "${config.legacyMode.kind}", but LEGACY_URL is not set: set it to the base of the old service.`,
    );
  }
  if (config.trustedDocumentsOnly && config.trustedDocuments === undefined) {
    throw new ConfigError(
      'TRUSTED_DOCUMENTS_ONLY is on, but TRUSTED_DOCUMENTS is not set: set it to the file of documents.',
    );
  }
  return {
    ...config,
    // GraphiQL sends arbitrary documents, which would all be refused.
    graphiql: config.graphiql && !config.trustedDocumentsOnly,
    seed: config.seed ?? (config.databaseUrl ? 'none' : 'demo'),
    // Hosting services add this parameter to URLs for Prisma.
    databasePooler:
      config.databasePooler ??
      (/[?&]pgbouncer=true(&|$)/.test(config.databaseUrl ?? '') ? 'transaction' : 'session'),
    mediaUrl: config.mediaUrl ?? 'https://media.example.com',
    hasMediaUrl: config.mediaUrl !== undefined,
  };
}

function read(environment: Environment, { name, schema, whenUnset }: Setting<unknown>): unknown {
  const value = environment[name];
  return value === undefined || value === '' ? whenUnset : readValue(name, schema, value);
}

/** @throws ConfigError that describes the values `name` may have */
export function readValue<Value>(
  name: string,
  schema: z.ZodType<Value, string>,
  value: string,
): Value {
  const { success, data } = schema.safeParse(value);
  if (success) return data;
  // As in user:password@host.
  const isSecret = secrets.has(schema) || /:\/\/.*:.*@/.test(value);
  const shown = isSecret ? 'not valid' : JSON.stringify(value);
  throw new ConfigError(`${name} is ${shown}, but it must be ${schema.description}.`);
}

export type IdentityConfig = Pick<
  Config,
  | 'authAudience'
  | 'authIssuer'
  | 'authJwksUrl'
  | 'authJwtSecret'
  | 'authStaffClaim'
  | 'authUserClaim'
  | 'authWebhookUrl'
  | 'legacyHost'
  | 'legacyUrl'
>;

/**
 * Without an endpoint or an exporter there are no traces: the default collector of the specification is rarely there.
 * @see https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function isTraced(config: Config): boolean {
  const { otelDisabled, tracesExporter, otlpEndpoint, otlpTracesEndpoint } = config;
  if (otelDisabled.toLowerCase() === 'true' || tracesExporter.some((name) => name === 'none'))
    return false;
  return tracesExporter.length > 0 || (otlpTracesEndpoint ?? otlpEndpoint) !== undefined;
}

/** LEGACY_HOST as the header `Host` of requests to `url`, if that is at the origin of LEGACY_URL. */
export function legacyHostFor(
  url: string,
  { legacyHost: host, legacyUrl }: Pick<Config, 'legacyHost' | 'legacyUrl'>,
): Readonly<Record<string, string>> {
  const isLegacy = legacyUrl !== undefined && new URL(legacyUrl).origin === new URL(url).origin;
  return isLegacy && host !== undefined ? { host } : {};
}

export type WriteConfig = Pick<Config, 'legacyMode' | 'writes'>;

/** Whether a viewer can sign in, and so write. */
export const canSignIn = ({ authJwksUrl, authJwtSecret, authWebhookUrl }: IdentityConfig) =>
  (authJwksUrl ?? authJwtSecret ?? authWebhookUrl) !== undefined;

/** Why all writes are refused, for every viewer: WRITES=off, or the old service owns the data. */
export function findOtherOwner({ legacyMode, writes }: WriteConfig): 'off' | 'legacy' | undefined {
  if (!writes) return 'off';
  return legacyMode.kind === 'shadow' || legacyMode.kind === 'canary' ? 'legacy' : undefined;
}
