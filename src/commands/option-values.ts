// Values of options that more than one command reads.
import { ConfigError } from '../config.ts';

/**
 * An absolute URL to put before paths, without a trailing slash.
 * @throws ConfigError
 */
export function readBase(option: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (/^https?:\/\/[^\s?#]+$/.test(value)) return value.replace(/\/+$/, '');
  throw new ConfigError(
    `${option} is ${JSON.stringify(value)}, but it may be an absolute http or https URL without query.`,
  );
}

/**
 * A whole number within limits.
 * @throws ConfigError
 */
export function readWholeNumber(
  option: string,
  value: string | undefined,
  min: number,
  max: number,
): number | undefined {
  if (value === undefined) return undefined;
  const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new ConfigError(
    `${option} is ${JSON.stringify(value)}, but it must be a whole number from ${min} to ${max}.`,
  );
}
