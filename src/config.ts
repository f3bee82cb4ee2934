// What the environment says, checked. Pure: text in, `Config` or a `ConfigError` out.
import { isIP } from 'node:net';
import { z } from 'zod';

/** A wrong setting; the message is one sentence that names the variable, its value and its range. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export type Environment = Readonly<Record<string, string | undefined>>;

// What settings may be; the description of each schema says it in words.

const text = z.string().describe('any text');
const onOrOff = z
  .enum(['on', 'off'])
  .transform((value) => value === 'on')
  .describe('"on" or "off"');
const port = wholeNumber(0, 65_535);

function wholeNumber(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .refine((number) => number >= min && number <= max)
    .describe(`a whole number from ${min} to ${max}`);
}

function oneOf<const Choice extends string>(...choices: Choice[]) {
  return z.enum(choices).describe(choices.map((choice) => `"${choice}"`).join(' or '));
}

function urlOf(isAllowed: (url: URL) => boolean, allowed: string) {
  return z
    .string()
    .refine((value) => URL.canParse(value) && isAllowed(new URL(value)))
    .describe(allowed);
}

const isHttp = ({ protocol }: URL) => /^https?:$/.test(protocol);
const httpUrl = urlOf(
  isHttp,
  'an absolute http or https URL, such as "https://auth.example.com/jwks.json"',
);
const baseUrl = urlOf((url) => isHttp(url) && !url.username && !url.password, '')
  .refine((value) => !/[?#\s]/.test(value))
  .transform((value) => value.replace(/\/+$/, ''))
  .describe(
    'an absolute http or https URL without query and fragment, such as "https://example.com"',
  );

function listOf(isItem: (item: string) => boolean, items: string) {
  return z
    .string()
    .transform((value): readonly string[] => value.split(',').map((item) => item.trim()))
    .refine((list) => list.every(isItem))
    .describe(`a comma-separated list of ${items}`);
}

const addresses = listOf((item) => {
  const [address = '', bits = '0', ...more] = item.split('/');
  const max = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return more.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= max;
}, 'addresses or CIDR ranges, such as "10.0.0.0/8,127.0.0.1"');

const origins = listOf(
  (item) => URL.canParse(item) && /^https?:/.test(item) && new URL(item).origin === item,
  'origins, such as "https://app.example.com"',
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
  /** Length of the window that they are counted in, in seconds. */
  readonly seconds: number;
}

const signingSecret = z
  .string()
  .refine((value) => Buffer.byteLength(value) >= 32)
  .describe('a secret of at least 32 bytes');
const postgresUrl = urlOf(
  ({ protocol }) => /^postgres(ql)?:$/.test(protocol),
  'a URL such as "postgresql://user:password@host:5432/database"',
);
/** What an error must not repeat. */
const secrets = new Set<z.ZodType>([signingSecret, postgresUrl]);

interface Setting<Value> {
  readonly name: string;
  readonly schema: z.ZodType<Value, string>;
  readonly whenUnset: Value;
}

function setting<Value, const Default extends Value | undefined>(
  name: string,
  schema: z.ZodType<Value, string>,
  whenUnset: Default,
) {
  return { name, schema, whenUnset } as Setting<Value | Default>;
}

// One line each. Whoever adds one adds it to .env.example and to the table in README.md.
const settings = {
  host: setting('HOST', text, 'localhost'),
  port: setting('PORT', port, 4000),
  /** PostgreSQL connection URL; undefined means the embedded database in `dataDir`. */
  databaseUrl: setting('DATABASE_URL', postgresUrl, undefined),
  /** Most connections of the pool to PostgreSQL. */
  databasePoolMax: setting('DATABASE_POOL_MAX', wholeNumber(1, 1000), 10),
  /** Folder of the embedded database. */
  dataDir: setting('DATA_DIR', text, '.data'),
  /** What an empty database is filled with; unset, it depends on the database. */
  seed: setting('SEED', oneOf('demo', 'none'), undefined),
  /** Base of the links in the listing, without a trailing slash; undefined means the request's own. */
  publicUrl: setting('PUBLIC_URL', baseUrl, undefined),
  /** Proxies whose `X-Forwarded-*` headers count: addresses or CIDR ranges. Empty: none. */
  trustProxy: setting('TRUST_PROXY', addresses, []),
  /** Base of image URLs, without a trailing slash. */
  mediaUrl: setting('MEDIA_URL', baseUrl, 'https://media.example.com'),
  /** Base of video URLs, without a trailing slash. */
  videoUrl: setting('VIDEO_URL', baseUrl, 'https://video.example.com'),
  /** Most bytes of answers kept in memory; 0 keeps none. */
  cacheMaxBytes: setting('CACHE_MAX_BYTES', wholeNumber(0, 2 ** 40), 67_108_864),
  /** Records per page of a list. */
  pageSize: setting('PAGE_SIZE', wholeNumber(1, 1000), 20),
  /** Who sees private outfits: everyone, or their owner only. */
  privateOutfits: setting('PRIVATE_OUTFITS', oneOf('listed', 'owner'), 'listed'),
  /** Where the keys of bearer tokens are; undefined: nobody can sign in, unless there is a secret. */
  authJwksUrl: setting('AUTH_JWKS_URL', httpUrl, undefined),
  /** Secret that bearer tokens are signed with, instead of keys. */
  authJwtSecret: setting('AUTH_JWT_SECRET', signingSecret, undefined),
  /** The `iss` that tokens must have; undefined: any. */
  authIssuer: setting('AUTH_ISSUER', text, undefined),
  /** The `aud` that tokens must have; undefined: any. */
  authAudience: setting('AUTH_AUDIENCE', text, undefined),
  /** Requests that a viewer or address may send; undefined: any number. */
  rateLimit: setting('RATE_LIMIT', rate, undefined),
  /** Most requests that are worked on at a time; more wait for their turn, or are refused. */
  maxConcurrentRequests: setting('MAX_CONCURRENT_REQUESTS', wholeNumber(1, 100_000), 128),
  /** Seconds after which work on a request is stopped. */
  requestTimeout: setting('REQUEST_TIMEOUT', wholeNumber(1, 600), 10),
  /** Most objects that the lists of a GraphQL document may give together. */
  graphqlMaxCost: setting('GRAPHQL_MAX_COST', wholeNumber(1, 1_000_000_000), 5_000),
  graphqlIntrospection: setting('GRAPHQL_INTROSPECTION', onOrOff, true),
  graphiql: setting('GRAPHIQL', onOrOff, true),
  /** Origins whose pages may read answers. Empty: none but the gateway's own. */
  corsOrigins: setting('CORS_ORIGINS', origins, []),
  /** Port that metrics are served on; undefined: they are not. */
  metricsPort: setting('METRICS_PORT', port, undefined),
  logLevel: setting('LOG_LEVEL', oneOf('debug', 'info', 'warn', 'error', 'silent'), 'info'),
};

type Settings = {
  readonly [Key in keyof typeof settings]: (typeof settings)[Key]['whenUnset'];
};

export interface Config extends Settings {
  /** What an empty database is filled with; `demo` is the default on the embedded one only. */
  readonly seed: 'demo' | 'none';
}

/**
 * Reads the whole configuration. An empty variable counts as unset.
 * @throws ConfigError for the first variable whose value is not allowed
 */
export function readConfig(environment: Environment): Config {
  const entries = Object.entries(settings).map(([key, one]) => [key, read(environment, one)]);
  const config: Settings = Object.fromEntries(entries);
  if (config.authJwksUrl && config.authJwtSecret) {
    throw new ConfigError('AUTH_JWKS_URL and AUTH_JWT_SECRET are both set: keep one of them.');
  }
  return { ...config, seed: config.seed ?? (config.databaseUrl ? 'none' : 'demo') };
}

function read(environment: Environment, { name, schema, whenUnset }: Setting<unknown>): unknown {
  const value = environment[name];
  if (value === undefined || value === '') return whenUnset;
  const { success, data } = schema.safeParse(value);
  if (success) return data;
  const shown = secrets.has(schema) ? 'not valid' : JSON.stringify(value);
  throw new ConfigError(`${name} is ${shown}, but it may be ${schema.description}.`);
}
