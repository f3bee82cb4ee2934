// What a page parameter may be.
const pattern = /^\s*\+?0*([1-9][0-9]*)\s*$/;

/** The largest page that GraphQL's 32-bit Int can name; no table has as many. */
export const maxPage = 2_147_483_647;

/**
 * Reads a `page` parameter.
 * @returns its number, 'last', or undefined when there can be no such page
 */
export function parsePageNumber(value: string | undefined): number | 'last' | undefined {
  if (value === undefined || value === '') return 1;
  if (value === 'last') return 'last';
  const digits = pattern.exec(value)?.[1];
  // Hundreds of digits become Infinity, which is past every end.
  return digits !== undefined && Number(digits) <= maxPage ? Number(digits) : undefined;
}
