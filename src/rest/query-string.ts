// Decodes the query string, and writes that of next and previous.

/** Query parameters in the order they were sent, names and values decoded. */
export type QueryParameters = readonly (readonly [name: string, value: string])[];

/**
 * Decodes the query string of a request target as HTML forms encode it: `+` is a space, `&` alone
 * separates, broken percent-encoding stays as it is, and bytes that are not UTF-8 become U+FFFD.
 * @param raw what follows the `?`; ASCII, since Node refuses a request target that is not
 */
export function parseQuery(raw: string): QueryParameters {
  return [...new URLSearchParams(`?${raw}`)];
}

/** The value of a parameter; the last one wins when it is repeated. */
export function readParameter(parameters: QueryParameters, name: string): string | undefined {
  return parameters.findLast(([parameterName]) => parameterName === name)?.[1];
}

/**
 * Encodes all parameters with `name` set to `value`: sorted by name in code point order, repeated
 * ones in the order they were sent.
 */
export function formatQuery(parameters: QueryParameters, name: string, value: string): string {
  return [...parameters.filter(([parameterName]) => parameterName !== name), [name, value] as const]
    .toSorted(([a], [b]) => compareCodePoints(a, b))
    .map(([parameterName, text]) => `${encodeForm(parameterName)}=${encodeForm(text)}`)
    .join('&');
}

/** JavaScript compares UTF-16 units, which puts U+10000 before U+FFFF; UTF-8 bytes do not. */
function compareCodePoints(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Only `A-Za-z0-9_.-~` stay raw; URLSearchParams would keep `*` and encode `~`. */
function encodeForm(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
