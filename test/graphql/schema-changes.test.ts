// What breaks apps that were written against the last released schema is said in the changelog.
import { readFileSync } from 'node:fs';
import { buildSchema, findBreakingChanges } from 'graphql';
import { expect, test } from 'vitest';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('every breaking change since the last release is in an item of the changelog that begins with "**Breaking:**"', () => {
  const [, unreleased = ''] =
    /^## \[Unreleased\]\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(read('CHANGELOG.md')) ?? [];
  const told = unreleased
    .split(/^(?=- )/m)
    .filter((item) => item.startsWith('- **Breaking:**'))
    .map((item) => item.replace(/\s+/g, ' '));
  const [released, current] = ['test/golden/released.graphql', 'docs/schema.graphql'].map((path) =>
    buildSchema(read(path)),
  );
  const untold = findBreakingChanges(released ?? expect.fail(), current ?? expect.fail())
    .map(({ description }) => description)
    .filter((description) => !told.some((item) => item.includes(description)));
  expect(untold).toEqual([]);
});
