// Schemas of the values of settings and options. The description of each completes the sentence "it may be …".
import { isIP } from 'node:net';
import { z } from 'zod';

export const text = z.string().describe('any text');
export const onOrOff = z
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
export const host = z
  .string()
  .refine((value) => isIP(value) !== 0 || hostName.test(value))
  .describe(
    'an IP address or a host name without port and brackets, such as "0.0.0.0", "::1" or "localhost"',
  );

export const hostAndPort = z
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
export const port = wholeNumber(0, 65_535);

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
export const size = quantity(
  { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 },
  'a size with its unit, such as "8KiB" or "64MiB",',
);

export function oneOf<const Choice extends string>(...choices: Choice[]) {
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
/** Credentials in a URL would not be sent. */
const isBare = (url: URL) => isHttp(url) && !url.username && !url.password;
const bareUrl = (example: string) =>
  urlOf(isBare, `an absolute http or https URL without user and password, such as "${example}"`);
export const httpUrl = bareUrl('https://auth.example.com/jwks.json');
export const tracesUrl = bareUrl('http://localhost:4318/v1/traces');

function baseUrlOf(allowed: string, isAllowed = (_url: URL) => true) {
  return urlOf((url) => isBare(url) && isAllowed(url), '')
    .refine((value) => !/[?#\s]/.test(value))
    .transform((value) => value.replace(/\/+$/, ''))
    .describe(allowed);
}

export const baseUrl = baseUrlOf(
  'an absolute http or https URL without query and fragment, such as "https://example.com"',
);
export const legacyUrl = baseUrlOf(
  'the base of the old service, an absolute http or https URL without /api, user and password, query and fragment, such as "https://old.example.com"',
  ({ pathname }) => !/\/api\/?$/.test(pathname),
);

export const webhookUrl = urlOf(
  (url) => isBare(url) && url.hash === '',
  'an absolute http or https URL without user, password and fragment, such as "https://old.example.com/whoami/"',
);

export const collectorUrl = baseUrlOf(
  'the base of an OpenTelemetry collector, an absolute http or https URL without user and password, query and fragment, such as "http://localhost:4318"',
);

export interface LegacyMode {
  readonly kind: 'off' | 'shadow' | 'canary' | 'mirror' | 'fallback';
  /** Percent of clients that this gateway answers. */
  readonly percent: number;
}

export const legacyMode = z
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
export const addresses = listOf(
  (item) => address.safeParse(item).success,
  'addresses or CIDR ranges, such as "10.0.0.0/8,127.0.0.1"',
);

export const pathPrefixes = listOf(
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

export const origins = listOf(
  (item) => item === '*' || isOrigin(item),
  'origins, such as "https://app.example.com" or "capacitor://localhost" (no patterns), or "*"',
);

/** Enumerations of OpenTelemetry: a name that is not known gives a warning only, as its specification demands. */
export const names = (known: string) => listOf((item) => item !== '', `names: ${known}`);

const isToken = (item: string) => /^[\w!#$%&'*+.^`|~-]+$/.test(item);
export const cookieNames = listOf(isToken, 'names of cookies, such as "sessionid"');
export const headerNames = listOf(isToken, 'names of headers, such as "X-App-Version"');

export const differences = listOf(
  (item) => item !== '',
  'kinds of differences (`outfit-gateway verify --help` names them), such as "fraction,header:vary"',
);

const periods = { second: 1, minute: 60, hour: 3600, day: 86_400 };
export const rate = z
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

export const moment = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })])
  .transform((value) => new Date(value))
  .describe('a date, such as "2027-01-31", or a moment, such as "2027-01-31T12:00:00Z"');

export const signingSecret = z
  .string()
  .refine((value) => Buffer.byteLength(value) >= 32)
  .describe('a secret of at least 32 bytes');
/** The database reads the rest, and says what is wrong with it. */
export const postgresUrl = z
  .string()
  .regex(/^\s*postgres(ql)?:\/\//i)
  .transform((value) => value.trim())
  .describe('a URL such as "postgresql://user:password@host:5432/database"');
export const postgresUrls = z
  .string()
  .transform((value): readonly string[] => value.split(/[\s,]+/).filter((item) => item !== ''))
  .refine((urls) => urls.every((url) => postgresUrl.safeParse(url).success))
  .describe(
    'URLs such as "postgresql://user:password@standby:5432/database", with commas between them',
  );
/** Schemas of secrets: errors do not quote their values. */
export const secrets = new Set<z.ZodType>([
  signingSecret,
  postgresUrl,
  postgresUrls,
  legacyUrl,
  webhookUrl,
  collectorUrl,
  tracesUrl,
]);
