import { isIP } from 'node:net';

/** What the environment says, checked. Pure: text in, `Config` or a `ConfigError` out. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** PostgreSQL connection URL; undefined means the embedded database in `dataDir`. */
  readonly databaseUrl: string | undefined;
  /** Most connections of the pool to PostgreSQL. */
  readonly databasePoolMax: number;
  /** Folder of the embedded database. */
  readonly dataDir: string;
  /** What an empty database is filled with; `demo` is the default on the embedded one only. */
  readonly seed: 'demo' | 'none';
  /** Base of the links in the listing, without a trailing slash; undefined means the request's own. */
  readonly publicUrl: string | undefined;
  /** Proxies whose `X-Forwarded-*` headers count: addresses or CIDR ranges. Empty: none. */
  readonly trustProxy: readonly string[];
  /** Base of image URLs, without a trailing slash. */
  readonly mediaUrl: string;
  /** Base of video URLs, without a trailing slash. */
  readonly videoUrl: string;
  /** Most bytes of answers kept in memory; 0 keeps none. */
  readonly cacheMaxBytes: number;
  /** Records per page of a list. */
  readonly pageSize: number;
  /** Who sees private outfits: everyone, or their owner only. */
  readonly privateOutfits: 'listed' | 'owner';
  /** Where the keys of bearer tokens are; undefined: nobody can sign in, unless there is a secret. */
  readonly authJwksUrl: string | undefined;
  /** Secret that bearer tokens are signed with, instead of keys. */
  readonly authJwtSecret: string | undefined;
  /** The `iss` that tokens must have; undefined: any. */
  readonly authIssuer: string | undefined;
  /** The `aud` that tokens must have; undefined: any. */
  readonly authAudience: string | undefined;
  /** Requests that a viewer or address may send; undefined: any number. */
  readonly rateLimit: RateLimit | undefined;
  /** Most requests that are worked on at a time; more wait for their turn, or are refused. */
  readonly maxConcurrentRequests: number;
  /** Seconds after which work on a request is stopped. */
  readonly requestTimeout: number;
  /** Most objects that the lists of a GraphQL document may give together. */
  readonly graphqlMaxCost: number;
  readonly graphqlIntrospection: boolean;
  readonly graphiql: boolean;
  /** Origins whose pages may read answers. Empty: none but the gateway's own. */
  readonly corsOrigins: readonly string[];
  /** Port that metrics are served on; undefined: they are not. */
  readonly metricsPort: number | undefined;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

export interface RateLimit {
  readonly requests: number;
  /** Length of the window that they are counted in, in seconds. */
  readonly seconds: number;
}

/** A wrong setting; the message is one sentence that names the variable, its value and its range. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the whole configuration. An empty variable counts as unset.
 * @throws ConfigError for the first variable whose value is not allowed
 */
export function readConfig(environment: Environment): Config {
  const databaseUrl = read(environment, 'DATABASE_URL', undefined, postgresUrl);
  const authJwksUrl = read(environment, 'AUTH_JWKS_URL', undefined, httpUrl);
  const authJwtSecret = read(environment, 'AUTH_JWT_SECRET', undefined, signingSecret);
  if (authJwksUrl && authJwtSecret) {
    throw new ConfigError('AUTH_JWKS_URL and AUTH_JWT_SECRET are both set: keep one of them.');
  }
  return {
    host: read(environment, 'HOST', 'localhost', text),
    port: read(environment, 'PORT', 4000, wholeNumber(0, 65_535)),
    databaseUrl,
    databasePoolMax: read(environment, 'DATABASE_POOL_MAX', 10, wholeNumber(1, 1000)),
    dataDir: read(environment, 'DATA_DIR', '.data', text),
    seed: read(environment, 'SEED', databaseUrl ? 'none' : 'demo', oneOf('demo', 'none')),
    publicUrl: read(environment, 'PUBLIC_URL', undefined, baseUrl),
    trustProxy: read(environment, 'TRUST_PROXY', [], addresses),
    mediaUrl: read(environment, 'MEDIA_URL', 'https://media.example.com', baseUrl),
    videoUrl: read(environment, 'VIDEO_URL', 'https://video.example.com', baseUrl),
    cacheMaxBytes: read(environment, 'CACHE_MAX_BYTES', 67_108_864, wholeNumber(0, 2 ** 40)),
    pageSize: read(environment, 'PAGE_SIZE', 20, wholeNumber(1, 1000)),
    privateOutfits: read(environment, 'PRIVATE_OUTFITS', 'listed', oneOf('listed', 'owner')),
    authJwksUrl,
    authJwtSecret,
    authIssuer: read(environment, 'AUTH_ISSUER', undefined, text),
    authAudience: read(environment, 'AUTH_AUDIENCE', undefined, text),
    rateLimit: read(environment, 'RATE_LIMIT', undefined, rate),
    maxConcurrentRequests: read(
      environment,
      'MAX_CONCURRENT_REQUESTS',
      128,
      wholeNumber(1, 100_000),
    ),
    requestTimeout: read(environment, 'REQUEST_TIMEOUT', 10, wholeNumber(1, 600)),
    graphqlMaxCost: read(environment, 'GRAPHQL_MAX_COST', 5_000, wholeNumber(1, 1_000_000_000)),
    graphqlIntrospection: read(environment, 'GRAPHQL_INTROSPECTION', true, onOrOff),
    graphiql: read(environment, 'GRAPHIQL', true, onOrOff),
    corsOrigins: read(environment, 'CORS_ORIGINS', [], origins),
    metricsPort: read(environment, 'METRICS_PORT', undefined, wholeNumber(0, 65_535)),
    logLevel: read(
      environment,
      'LOG_LEVEL',
      'info',
      oneOf('debug', 'info', 'warn', 'error', 'silent'),
    ),
  };
}

/** What a variable may be, in words, and how its text becomes a value (undefined: not allowed). */
interface Kind<Value> {
  readonly allowed: string;
  readonly secret?: true;
  parse(value: string): Value | undefined;
}

function read<Value, Default>(
  environment: Environment,
  name: string,
  whenUnset: Default,
  kind: Kind<Value>,
): Value | Default {
  const value = environment[name];
  if (value === undefined || value === '') return whenUnset;
  const parsed = kind.parse(value);
  if (parsed !== undefined) return parsed;
  const shown = kind.secret ? 'not valid' : JSON.stringify(value);
  throw new ConfigError(`${name} is ${shown}, but it may be ${kind.allowed}.`);
}

const text: Kind<string> = { allowed: 'any text', parse: (value) => value };

function wholeNumber(min: number, max: number): Kind<number> {
  return {
    allowed: `a whole number from ${min} to ${max}`,
    parse: (value) => {
      const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
      return number >= min && number <= max ? number : undefined;
    },
  };
}

function oneOf<const Choice extends string>(...choices: Choice[]): Kind<Choice> {
  return {
    allowed: choices.map((choice) => `"${choice}"`).join(' or '),
    parse: (value) => choices.find((choice) => choice === value),
  };
}

const onOrOff: Kind<boolean> = {
  allowed: '"on" or "off"',
  parse: (value) => ({ on: true, off: false })[value],
};

const signingSecret: Kind<string> = {
  allowed: 'a secret of at least 32 bytes',
  secret: true,
  parse: (value) => (Buffer.byteLength(value) >= 32 ? value : undefined),
};

const periods = { second: 1, minute: 60, hour: 3600, day: 86_400 };

const rate: Kind<RateLimit> = {
  allowed: 'a number of requests per second, minute, hour or day, such as "600/minute"',
  parse: (value) => {
    const [, requests, period = ''] =
      /^([1-9]\d{0,8})\/(second|minute|hour|day)$/.exec(value) ?? [];
    const seconds = periods[period as keyof typeof periods];
    return seconds ? { requests: Number(requests), seconds } : undefined;
  },
};

const origins: Kind<readonly string[]> = {
  allowed: 'a comma-separated list of origins, such as "https://app.example.com"',
  parse: (value) => {
    const list = value.split(',').map((part) => part.trim());
    return list.every(isOrigin) ? list : undefined;
  },
};

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text;
}

const httpUrl: Kind<string> = {
  allowed: 'an absolute http or https URL, such as "https://auth.example.com/jwks.json"',
  parse: (value) =>
    URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) ? value : undefined,
};

const baseUrl: Kind<string> = {
  allowed:
    'an absolute http or https URL without query and fragment, such as "https://example.com"',
  parse: (value) => {
    if (!URL.canParse(value) || /[?#\s]/.test(value)) return undefined;
    const { protocol, username, password } = new URL(value);
    if (!/^https?:$/.test(protocol) || username || password) return undefined;
    return value.replace(/\/+$/, '');
  },
};

// The value holds a password, so an error never repeats it.
const postgresUrl: Kind<string> = {
  allowed: 'a URL such as "postgresql://user:password@host:5432/database"',
  secret: true,
  parse: (value) =>
    URL.canParse(value) && /^postgres(ql)?:$/.test(new URL(value).protocol) ? value : undefined,
};

const addresses: Kind<readonly string[]> = {
  allowed: 'a comma-separated list of addresses or CIDR ranges, such as "10.0.0.0/8,127.0.0.1"',
  parse: (value) => {
    const list = value.split(',').map((part) => part.trim());
    return list.every(isAddressOrRange) ? list : undefined;
  },
};

function isAddressOrRange(text: string): boolean {
  const [address = '', bits = '0', ...more] = text.split('/');
  const max = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return more.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= max;
}
