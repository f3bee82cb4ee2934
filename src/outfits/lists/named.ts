/** The text of a statement with `:name` in place of a value, as PostgreSQL takes it: `$1`, `$2` and their values. */
export function named(
  text: string,
  values: Readonly<Record<string, unknown>>,
): { readonly text: string; readonly values: readonly unknown[] } {
  const names: string[] = [];
  const numbered = text.replace(/(?<!:):([a-z]\w*)/gi, (_found, name: string) => {
    const index = names.indexOf(name);
    return `$${index < 0 ? names.push(name) : index + 1}`;
  });
  return { text: numbered, values: names.map((name) => values[name] ?? null) };
}
