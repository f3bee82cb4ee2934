// What the last release promised: lists in test/golden/, which later versions may only add to.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './page.ts';

/** For people: free to be reworded. */
const texts = new Set('description summary example examples title info servers'.split(' '));

type Json = ReturnType<typeof JSON.parse>;

/** What `before` has that `after` lacks or has otherwise, by its path. */
export function lost(before: Json, after: Json, path = ''): string[] {
  if (Array.isArray(before) && Array.isArray(after)) {
    const keyOf = (one: Json) => one?.name ?? one?.$ref ?? JSON.stringify(one);
    const found = new Map(after.map((one) => [keyOf(one), one]));
    return before.flatMap((one) => lost(one, found.get(keyOf(one)), `${path}/${keyOf(one)}`));
  }
  if (typeof before === 'object' && before !== null && after !== undefined) {
    return Object.keys(before)
      .filter(
        (key) => !texts.has(key) || (typeof before[key] === 'object' && /properties$/.test(path)),
      )
      .flatMap((key) => lost(before[key], after?.[key], `${path}/${key}`));
  }
  return before === after ? [] : [`${path}: ${JSON.stringify(before)} is ${JSON.stringify(after)}`];
}

/**
 * Names that are gone, or have another value, since the last release. With RELEASE=1, which a release sets, the golden
 * list becomes what is there.
 */
export function lostSinceRelease(name: string, current: object): string[] {
  const path = join(root, `test/golden/released-${name}.json`);
  if (process.env['RELEASE']) {
    const keep = (key: string, value: unknown) => (/^examples?$/.test(key) ? undefined : value);
    writeFileSync(path, `${JSON.stringify(current, keep, 2)}\n`);
  }
  return lost(JSON.parse(readFileSync(path, 'utf8')), current);
}
