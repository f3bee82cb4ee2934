// Which Accept headers take JSON.

const json = new Set(['*/*', 'application/*', 'application/json']);

/** Whether an `Accept` header takes JSON. Parameters do not count, not even `q=0`: as in DRF. */
export function acceptsJson(header: string | undefined): boolean {
  if (header === undefined || header.trim() === '' || json.has(header)) return true;
  return header
    .split(',')
    .some((part) => json.has((part.split(';')[0] ?? '').trim().toLowerCase()));
}
