// What breaks apps that were written against the last released schema is said in the changelog.
import { readFileSync } from 'node:fs';
import { buildSchema, findBreakingChanges } from 'graphql';
import { describe, expect, test } from 'vitest';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const released = read('test/golden/released.graphql');

/** Breaking changes that no item of "Unreleased" beginning with "**Breaking:**" names by its coordinate. */
function findUntold(before: string, after: string, changelog: string): string[] {
  const [, unreleased = ''] =
    /^## \[Unreleased\]\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(changelog) ?? [];
  const told = unreleased
    .split(/^(?=- )/m)
    .filter((item) => item.startsWith('- **Breaking:**'))
    .flatMap((item) => [...item.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
  return findBreakingChanges(buildSchema(before), buildSchema(after))
    .filter(({ description }) => !told.includes(coordinateOf(description)))
    .map(({ description }) => `${description} Name \`${coordinateOf(description)}\`.`);
}

/** As of the specification: `Type`, `Type.field`, `Type.field(argument:)`, `Enum.VALUE`. */
function coordinateOf(description: string): string {
  const [, member, type] =
    /(\w+) (?:was removed from (?:enum|union) type|on input type) (\w+)/.exec(description) ?? [];
  if (type) return `${type}.${member}`;
  const [, added, field] = /^A required arg (\w+) on ([\w.]+)/.exec(description) ?? [];
  if (field) return `${field}(${added}:)`;
  const [, name = '', argument] = /^([\w.]+)(?: arg (\w+))?/.exec(description) ?? [];
  return argument ? `${name}(${argument}:)` : name;
}

test('every breaking change since the last release is named in the changelog', () => {
  const untold = findUntold(released, read('docs/schema.graphql'), read('CHANGELOG.md'));
  expect(untold).toEqual([]);
});

describe('the comparison', () => {
  const before = `
    type Query { shoe(size: Int): Shoe things: [Thing] find(input: Search): Shoe }
    type Shoe { id: Int name: String }
    type Boot { id: Int }
    union Thing = Shoe | Boot
    enum Colour { RED BLUE }
    input Search { name: String colour: Colour }
  `;

  test.each([
    ['id: Int name', 'id: ID name', 'Shoe.id'],
    ['name: String }\n    type', '}\n    type', 'Shoe.name'],
    ['shoe(size: Int)', 'shoe', 'Query.shoe(size:)'],
    ['shoe(size: Int)', 'shoe(size: Int!)', 'Query.shoe(size:)'],
    ['shoe(size: Int)', 'shoe(size: Int, maker: ID!)', 'Query.shoe(maker:)'],
    ['RED BLUE', 'RED', 'Colour.BLUE'],
    ['Shoe | Boot', 'Shoe', 'Thing.Boot'],
    ['input Search {', 'input Search { size: Int!', 'Search.size'],
  ])('wants to be told of "%s" turned into "%s"', (from, to, coordinate) => {
    const after = before.replace(from, to);
    expect(after).not.toBe(before);
    const log = (lines: string) => `## [Unreleased]\n\n${lines}\n\n## [1.0.0]\n\n`;
    const told = log(`- **Breaking:** of late,\n  \`${coordinate}\` is another.\n- More.`);
    expect(findUntold(before, after, told)).toEqual([]);
    for (const untold of [
      log(''),
      log(`- \`${coordinate}\` is another.`),
      log(`- **Breaking:** \`${coordinate}.x\` is another.`),
      `${log('')}- **Breaking:** \`${coordinate}\` is another.`,
    ]) {
      expect(findUntold(before, after, untold)).toEqual([
        expect.stringContaining(`Name \`${coordinate}\`.`),
      ]);
    }
  });
});
