// Timestamps: microseconds since 1970-01-01T00:00:00Z, in the proleptic Gregorian calendar.
const pattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?Z$/;

let latest = { milliseconds: 0, taken: 0 };

/** The current time. JavaScript's clock has milliseconds: the microseconds number the calls within one, for order. */
export function takeTimestamp(): bigint {
  const milliseconds = Date.now();
  const taken = milliseconds === latest.milliseconds ? Math.min(latest.taken + 1, 999) : 0;
  latest = { milliseconds, taken };
  return BigInt(milliseconds) * 1000n + BigInt(taken);
}

/** Of the years 0001 to 9999. */
const [first, last] = [-62_135_596_800_000_000n, 253_402_300_799_999_999n];

/** ISO 8601 in UTC, always with six digits of fraction and `Z`. What no client reads is the first or the last moment. */
export function formatTimestamp(given: bigint): string {
  const micros = given < first ? first : given > last ? last : given;
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = (micros - fraction) / 1_000_000n;
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  return `${whole}.${fraction.toString().padStart(6, '0')}Z`;
}

/** Parses ISO 8601 in UTC: years 0001 to 9999, up to six digits of fraction, `Z`. Undefined for other text. */
export function parseTimestamp(text: string): bigint | undefined {
  const match = pattern.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = ''] = match;
  const whole = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const milliseconds = Date.parse(whole);
  // Date.parse accepts 30 February as 1 March, and 24:00 as the next day.
  if (Number.isNaN(milliseconds) || year === '0000') return undefined;
  if (new Date(milliseconds).toISOString() !== whole) return undefined;
  return BigInt(milliseconds) * 1000n + BigInt(fraction.padEnd(6, '0'));
}

/**
 * Parses RFC 3339 with any offset; zeros behind six digits of fraction are ignored, as .NET writes seven digits.
 * @see https://www.rfc-editor.org/rfc/rfc3339#section-5.6
 */
export function parseWithOffset(text: string): bigint | undefined {
  if (text.length > 100) return undefined;
  const match = /^(.{10}t.*?)(?:z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i.exec(text);
  if (!match) return undefined;
  const [, local = '', sign = '+', hours = 0, minutes = 0] = match;
  const exact = local.replace(/(\.\d{6})0+$/, '$1');
  const micros = parseTimestamp(`${exact.toUpperCase()}Z`);
  const offset = BigInt(`${sign}${60 * Number(hours) + Number(minutes)}`) * 60_000_000n;
  return micros === undefined ? undefined : micros - offset;
}
