// What somebody who mistyped a name may have meant.

/** `, did you mean --port?` in brackets, or nothing when no name is near. */
export function didYouMean(given: string, names: readonly string[]): string {
  const near = names
    .map((name) => ({ name, distance: distanceBetween(given, name) }))
    .filter(({ name, distance }) => distance <= Math.min(2, name.length / 3))
    .sort((a, b) => a.distance - b.distance);
  return near[0] ? ` (did you mean ${near[0].name}?)` : '';
}

/** Letters to add, leave out or exchange (Levenshtein). */
function distanceBetween(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...a].entries()) {
    const line = [row + 1];
    for (let column = 0; column < b.length; column += 1) {
      const exchanged = (above[column] ?? 0) + (letter === b[column] ? 0 : 1);
      line.push(Math.min(exchanged, (above[column + 1] ?? 0) + 1, (line[column] ?? 0) + 1));
    }
    above = line;
  }
  return above[b.length] ?? 0;
}
