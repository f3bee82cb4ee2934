// Query strings of requests and links: parsing and formatting.
export type QueryParameters = readonly (readonly [name: string, value: string])[];

/**
 * Parses form encoding: `+` is a space, invalid percent-encoding stays, invalid UTF-8 becomes U+FFFD.
 * @see https://url.spec.whatwg.org/#urlencoded-parsing
 */
export function parseQuery(raw: string): QueryParameters {
  return [...new URLSearchParams(`?${raw}`)];
}

export function readParameter(parameters: QueryParameters, name: string): string | undefined {
  return parameters.findLast(([parameterName]) => parameterName === name)?.[1];
}

/** Sets `name` to `value`, or removes it, and sorts by name in code point order; repeated names keep their order. */
export function formatQuery(
  parameters: QueryParameters,
  name: string,
  value: string | undefined,
): string {
  const others = parameters.filter(([parameterName]) => parameterName !== name);
  return [...others, ...(value === undefined ? [] : [[name, value] as const])]
    .map(([parameterName, text]) => [sortKeyOf(parameterName), parameterName, text] as const)
    .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
    .map(([_key, parameterName, text]) => `${encodeForm(parameterName)}=${encodeForm(text)}`)
    .join('&');
}

/** JavaScript compares UTF-16 units, which puts U+10000 before U+FFFF: this moves surrogates behind all others. */
function sortKeyOf(name: string): string {
  return name.replace(/[\ud800-\uffff]/g, (unit) => {
    const code = unit.charCodeAt(0);
    return String.fromCharCode(code < 0xe000 ? code + 0x2000 : code - 0x800);
  });
}

/** Only `A-Za-z0-9_.-~` stay raw; URLSearchParams would keep `*` and encode `~`. */
function encodeForm(text: string): string {
  if (/^[\w.~-]*$/.test(text)) return text;
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}

export type PathParameters = Readonly<Record<string, string>>;

/** `/api/users/:id/` with the values of its parameters. */
export function fillPath(path: string, parameters: PathParameters): string {
  return path.replace(/:(\w+)/g, (_all, name: string) =>
    encodeURIComponent(parameters[name] ?? ''),
  );
}
