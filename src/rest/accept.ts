// Which Accept headers take JSON.
import { json } from '../http/accept.ts';

/** Whether an `Accept` header takes JSON. Parameters do not count, not even `q=0`: as in DRF. */
export function acceptsJson(header: string | undefined): boolean {
  if (header === undefined || header.trim() === '' || json.has(header)) return true;
  return header
    .split(',')
    .some((part) => json.has((part.split(';')[0] ?? '').trim().toLowerCase()));
}
