// Moments are microseconds since 1970-01-01T00:00:00Z, in the proleptic Gregorian calendar.
const pattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?Z$/;

let latest = { milliseconds: 0, taken: 0 };

/** Now. JavaScript's clock has milliseconds: the microseconds count the calls within one, so that later is later. */
export function takeTimestamp(): bigint {
  const milliseconds = Date.now();
  const taken = milliseconds === latest.milliseconds ? Math.min(latest.taken + 1, 999) : 0;
  latest = { milliseconds, taken };
  return BigInt(milliseconds) * 1000n + BigInt(taken);
}

/** Writes a moment as ISO 8601 UTC with six digits and `Z`, also when the microseconds are 0. */
export function formatTimestamp(micros: bigint): string {
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = (micros - fraction) / 1_000_000n;
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  return `${whole}.${fraction.toString().padStart(6, '0')}Z`;
}

/** Microseconds of ISO 8601 UTC, years 0001 to 9999, up to six digits of fraction, `Z`; undefined for other text. */
export function parseTimestamp(text: string): bigint | undefined {
  const match = pattern.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = ''] = match;
  const whole = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const milliseconds = Date.parse(whole);
  // Date.parse takes 30 February for 1 March, and 24:00 for the next day.
  if (Number.isNaN(milliseconds) || year === '0000') return undefined;
  if (new Date(milliseconds).toISOString() !== whole) return undefined;
  return BigInt(milliseconds) * 1000n + BigInt(fraction.padEnd(6, '0'));
}
