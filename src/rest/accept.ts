const json = new Set(['*/*', 'application/*', 'application/json']);

/** Whether an `Accept` header takes JSON. Parameters do not count, not even `q=0`: as in DRF. */
export function acceptsJson(header: string | undefined): boolean {
  const types = (header ?? '')
    .split(',')
    .map((part) => part.split(';', 1)[0]?.trim().toLowerCase());
  return types.some((type) => type && json.has(type)) || types.every((type) => type === '');
}
