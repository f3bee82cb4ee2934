// What breaks apps that were written against the last released schema is said in the changelog.
import { readFileSync } from 'node:fs';
import { buildSchema, findBreakingChanges } from 'graphql';
import { expect, test } from 'vitest';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const released = read('test/golden/released.graphql');

/** Breaking changes whose sentence of graphql is in no item of "Unreleased" that begins with "**Breaking:**". */
function findUntold(before: string, after: string, changelog: string): string[] {
  const [, unreleased = ''] =
    /^## \[Unreleased\]\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(changelog) ?? [];
  const told = unreleased
    .split(/^(?=- )/m)
    .filter((item) => item.startsWith('- **Breaking:**'))
    .map((item) => item.replace(/\s+/g, ' '));
  return findBreakingChanges(buildSchema(before), buildSchema(after))
    .map(({ description }) => description)
    .filter((description) => !told.some((item) => item.includes(description)));
}

test('every breaking change since the last release is named in the changelog', () => {
  const untold = findUntold(released, read('docs/schema.graphql'), read('CHANGELOG.md'));
  expect(untold).toEqual([]);
});

test('a breaking change is named by its sentence, in an item of the next release', () => {
  const [before, after] = ['type Query { a: Int b: Int }', 'type Query { a: ID b: Int }'];
  const sentence = 'Query.a changed type from Int to ID.';
  const log = (lines: string) => `## [Unreleased]\n\n${lines}\n\n## [1.0.0]\n\n`;
  const told = `- **Breaking:** ${sentence.replace(' to ', '\n  to ')}\n- More.`;
  expect(findUntold(before, after, log(told))).toEqual([]);
  for (const untold of [log(''), log(`- ${sentence}`), log('- **Breaking:** a'), log('') + told]) {
    expect(findUntold(before, after, untold)).toEqual([sentence]);
  }
});
