// Configuration: parses and validates environment variables. Pure: text in, `Config` or a `ConfigError` out.
import { isIP } from 'node:net';
import { z } from 'zod';

/** An invalid setting. The message is one sentence with the variable, its value and its range. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export type Environment = Readonly<Record<string, string | undefined>>;

// Schemas of values. The description of each completes the sentence "it may be …".

export const text = z.string().describe('any text');
const onOrOff = z
  .stringbool({ truthy: ['on', 'true', '1'], falsy: ['off', 'false', '0'], case: 'sensitive' })
  .describe('"on" or "off"');

/** Not `URL.canParse`: once optimised, Node.js 20 rejects every address with a letter such as ü. */
export function parseUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
/** A numeric last label is an invalid IPv4 address, such as 300.1.1.1. @see RFC 1123 §2.1 */
const hostName = new RegExp(
  `^(?=.{1,253}$)(?:${label}\\.)*(?!(?:\\d+|0x[0-9a-f]*)\\.?$)${label}\\.?$`,
  'i',
);
const host = z
  .string()
  .refine((value) => isIP(value) !== 0 || hostName.test(value))
  .describe(
    'an IP address or a host name without port and brackets, such as "0.0.0.0", "::1" or "localhost"',
  );

const hostAndPort = z
  .string()
  .refine((value) => parseUrl(`http://${value}/`)?.host === value.toLowerCase().replace(/:80$/, ''))
  .describe('a host name, with a port if it is not the default, such as "old.example.com"');

const within = (pattern: RegExp, kind: string) => (min: number, max: number) =>
  z
    .string()
    .regex(pattern)
    .transform(Number)
    .refine((number) => number >= min && number <= max)
    .describe(`${kind} from ${min} to ${max}`);
export const wholeNumber = within(/^\d{1,15}$/, 'a whole number');
export const decimal = within(/^\d{1,15}(\.\d{1,6})?$/, 'a number');
const port = wholeNumber(0, 65_535);

/** A number with its unit, such as 10s, in the smallest unit of `units`. A bare number is no value, except 0. */
function quantity<Unit extends string>(units: Readonly<Record<Unit, number>>, kind: string) {
  const pattern = new RegExp(`^(?:0|(\\d{1,15})(${Object.keys(units).join('|')}))$`);
  const parse = (value: string) => {
    const [, number = '0', unit = ''] = pattern.exec(value) ?? [];
    return Number(number) * (units[unit as Unit] ?? 0);
  };
  type Quantity = `${number}${Unit}` | '0';
  return (min: Quantity, max: Quantity) =>
    z
      .string()
      .regex(pattern)
      .transform(parse)
      .refine((amount) => amount >= parse(min) && amount <= parse(max))
      .describe(`${kind} from ${min} to ${max}`);
}
/** In milliseconds. */
export const duration = quantity(
  { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 },
  'a duration with its unit, such as "500ms", "10s" or "5m",',
);
/** In bytes. */
const size = quantity(
  { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 },
  'a size with its unit, such as "8KiB" or "64MiB",',
);

function oneOf<const Choice extends string>(...choices: Choice[]) {
  return z.enum(choices).describe(choices.map((choice) => `"${choice}"`).join(' or '));
}

function urlOf(isAllowed: (url: URL) => boolean, allowed: string) {
  return z
    .string()
    .refine((value) => {
      const url = parseUrl(value);
      return url !== undefined && isAllowed(url);
    })
    .describe(allowed);
}

const isHttp = ({ protocol }: URL) => /^https?:$/.test(protocol);
const httpUrl = urlOf(
  isHttp,
  'an absolute http or https URL, such as "https://auth.example.com/jwks.json"',
);

function baseUrlOf(isAllowed: (url: URL) => boolean, allowed: string) {
  return urlOf((url) => isHttp(url) && !url.username && !url.password && isAllowed(url), '')
    .refine((value) => !/[?#\s]/.test(value))
    .transform((value) => value.replace(/\/+$/, ''))
    .describe(allowed);
}

export const baseUrl = baseUrlOf(
  () => true,
  'an absolute http or https URL without query and fragment, such as "https://example.com"',
);
const legacyUrl = baseUrlOf(
  ({ pathname }) => !/\/api\/?$/.test(pathname),
  'the base of the old service, an absolute http or https URL without /api, user and password, query and fragment, such as "https://old.example.com"',
);

const webhookUrl = urlOf(
  (url) => isHttp(url) && !url.username && !url.password && url.hash === '',
  'an absolute http or https URL without user, password and fragment, such as "https://old.example.com/whoami/"',
);

const tracesUrl = urlOf(
  (url) => isHttp(url) && !url.username && !url.password,
  'an absolute http or https URL without user and password, such as "http://localhost:4318/v1/traces"',
);

const collectorUrl = baseUrlOf(
  () => true,
  'the base of an OpenTelemetry collector, an absolute http or https URL without user and password, query and fragment, such as "http://localhost:4318"',
);

export interface LegacyMode {
  readonly kind: 'off' | 'shadow' | 'canary' | 'mirror' | 'fallback';
  /** Percent of clients that this gateway answers. */
  readonly percent: number;
}

const legacyMode = z
  .string()
  .regex(/^(off|shadow|mirror|fallback|canary:(\d{1,2}|100))$/)
  .transform((value): LegacyMode => {
    const [kind, percent] = value.split(':') as [LegacyMode['kind'], string?];
    return { kind, percent: Number(percent ?? (kind === 'shadow' ? 0 : 100)) };
  })
  .describe('"off", "shadow", "canary:N" with N from 0 to 100, "mirror" or "fallback"');

function listOf(isItem: (item: string) => boolean, items: string) {
  return z
    .string()
    .transform((value): readonly string[] => value.split(',').map((item) => item.trim()))
    .refine((list) => list.every(isItem))
    .describe(`a comma-separated list of ${items}`);
}

const address = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);
const addresses = listOf(
  (item) => address.safeParse(item).success,
  'addresses or CIDR ranges, such as "10.0.0.0/8,127.0.0.1"',
);

const pathPrefixes = listOf(
  (item) =>
    /^(?:\/[\w.~-]*[\w~-][\w.~-]*)(?:\/\*|\/[\w.~-]*[\w~-][\w.~-]*)*\/$/.test(item) &&
    !/^\/(?:graphql|health|outfits|users)\//.test(item),
  'path prefixes that begin and end with a slash, such as "/api/,/media/,/api/outfits/*/comments/"; "/" and paths of the gateway (/graphql/, /health/, /outfits/, /users/) are not allowed',
);

/** As browsers send it. Not `URL.origin`: it is null for the schemes of apps in a web view. */
function isOrigin(item: string): boolean {
  const url = parseUrl(item);
  const isInFull = url !== undefined && url.host !== '' && !item.includes('*');
  return isInFull && `${url.protocol}//${url.host}` === item;
}

const origins = listOf(
  (item) => item === '*' || isOrigin(item),
  'origins, such as "https://app.example.com" or "capacitor://localhost" (no patterns), or "*"',
);

/** Enumerations of OpenTelemetry: a name that is not known gives a warning only, as its specification demands. */
const names = (known: string) => listOf((item) => item !== '', `names: ${known}`);

const isToken = (item: string) => /^[\w!#$%&'*+.^`|~-]+$/.test(item);
const cookieNames = listOf(isToken, 'names of cookies, such as "sessionid"');
const headerNames = listOf(isToken, 'names of headers, such as "X-App-Version"');

const differences = listOf(
  (item) => item !== '',
  'kinds of differences (`outfit-gateway verify --help` names them), such as "fraction,header:vary"',
);

const periods = { second: 1, minute: 60, hour: 3600, day: 86_400 };
const rate = z
  .string()
  .regex(/^[1-9]\d{0,8}\/(second|minute|hour|day)$/)
  .transform((value): RateLimit => {
    const [requests, period] = value.split('/');
    return { requests: Number(requests), seconds: periods[period as keyof typeof periods] };
  })
  .describe('a number of requests per second, minute, hour or day, such as "600/minute"');

export interface RateLimit {
  readonly requests: number;
  /** Length of the window, in seconds. */
  readonly seconds: number;
}

const moment = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })])
  .transform((value) => new Date(value))
  .describe('a date, such as "2027-01-31", or a moment, such as "2027-01-31T12:00:00Z"');

const signingSecret = z
  .string()
  .refine((value) => Buffer.byteLength(value) >= 32)
  .describe('a secret of at least 32 bytes');
/** The database reads the rest, and says what is wrong with it. */
const postgresUrl = z
  .string()
  .regex(/^\s*postgres(ql)?:\/\//i)
  .transform((value) => value.trim())
  .describe('a URL such as "postgresql://user:password@host:5432/database"');
const postgresUrls = z
  .string()
  .transform((value): readonly string[] => value.split(/[\s,]+/).filter((item) => item !== ''))
  .refine((urls) => urls.every((url) => postgresUrl.safeParse(url).success))
  .describe(
    'URLs such as "postgresql://user:password@standby:5432/database", with commas between them',
  );
/** Schemas of secrets: errors do not quote their values. */
const secrets = new Set<z.ZodType>([
  signingSecret,
  postgresUrl,
  postgresUrls,
  legacyUrl,
  webhookUrl,
  collectorUrl,
  tracesUrl,
]);

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
    unknownParameters: setting('UNKNOWN_PARAMETERS', oneOf('ignore', 'log', 'refuse'), 'ignore'),
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

/** Why no client can write: WRITES=off, the old service, or no key for tokens; undefined: clients can write. */
export function findWriteObstacle(
  config: IdentityConfig & WriteConfig,
): 'off' | 'legacy' | 'identity' | undefined {
  return (
    findOtherOwner(config) ??
    ((config.authJwksUrl ?? config.authJwtSecret ?? config.authWebhookUrl) ? undefined : 'identity')
  );
}

/** Why all writes are refused, for every viewer: WRITES=off, or the old service owns the data. */
export function findOtherOwner({ legacyMode, writes }: WriteConfig): 'off' | 'legacy' | undefined {
  if (!writes) return 'off';
  return legacyMode.kind === 'shadow' || legacyMode.kind === 'canary' ? 'legacy' : undefined;
}
