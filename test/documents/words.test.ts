// Names of tests and sentences for people: riddles that must not come back, and what to say instead (CONTRIBUTING.md, Habits).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../support/documents/page.ts';

const riddles: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b(?:is|are) none\b/g, '"does not exist", or the behaviour'],
  [/(?<!\bthere )\b(?:is|are) no (?!longer\b|more\b)/gi, '"is not a"'],
  [/\bthat there (?:is|are)\b(?: not)?/g, '"that does not exist", "that exists"'],
  [/\bmay (?:only )?be (?:\d|an? |the |one of )/g, '"must be": it is a rule'],
  [/\bbut (?:it )?may be\b/g, '"must be": it is a rule'],
  [/\bboth\b[^.]*\bmust hold\b/g, 'what is returned'],
  [/\bis what it is\b/g, 'what is returned'],
  [/\banew\b/g, '"again"'],
];

const read = (name: string) => readFileSync(join(root, name), 'utf8');

function filesBelow(folder: string, suffix: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => suffix.test(name) && !/node_modules|generated/.test(name))
    .map((name) => join(folder, name));
}

/** All of a file but its comments: riddles are in no code, but in its texts. */
const withoutComments = (name: string) =>
  read(name)
    .replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
    .replace(/(?<=\s)\/\/ .*$/gm, '');

/** All of a page but its code. */
const withoutCode = (name: string) =>
  read(name)
    .replace(/^ *```.*?^ *```$/gms, '')
    .replace(/`[^`]*`/g, '`…`');

const riddlesIn = (name: string, text: string) =>
  riddles.flatMap(([pattern, instead]) => {
    const line = text.replace(/\s+/g, ' ');
    return [...line.matchAll(pattern)].map(
      ({ index }) =>
        `${name}: "${line.slice(Math.max(0, index - 40), index + 60)}": say ${instead}`,
    );
  });

test('the names of tests have no riddles', () => {
  const files = filesBelow('test', /\.test\.tsx?$/).filter(
    (name) => !name.endsWith('words.test.ts'),
  );
  const names =
    /\b(?:test|it|describe)\b[^'"`\n]*(?:\([^()]*\)\s*)?\(\s*(['"`])((?:\\.|(?!\1).)+)\1/g;
  const found = files.flatMap((file) =>
    [...read(file).matchAll(names)].flatMap(([, , name = '']) => riddlesIn(file, name)),
  );
  expect(found).toEqual([]);
});

test('the sentences of settings, errors, commands, pages and the log have no riddles', () => {
  const found = filesBelow('src', /\.(?:tsx?|graphql)$/).flatMap((name) =>
    riddlesIn(name, withoutComments(name)),
  );
  const others = ['.env.example', 'docs/alerts.yaml', 'prisma/schema.prisma'];
  expect([...found, ...others.flatMap((name) => riddlesIn(name, read(name)))]).toEqual([]);
});

test('the documents have no riddles', () => {
  const files = ['docs', 'src', 'prisma', 'test'].flatMap((folder) => filesBelow(folder, /\.md$/));
  files.push('README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'bench/README.md');
  expect(files.flatMap((name) => riddlesIn(name, withoutCode(name)))).toEqual([]);
});
