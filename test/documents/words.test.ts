// Names of tests and sentences for people: riddles that must not come back, and what to say instead (CONTRIBUTING.md, Words).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../support/documents/page.ts';

const riddles: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b(?:is|are) none\b/, '"does not exist", or the behaviour'],
  [/\b(?:that|which|what) (?:is|are) no (?!longer\b|more\b)/, '"is not a"'],
  [/\bthat there (?:is|are)\b(?: not)?/, '"that does not exist", "that exists"'],
  [/\bbut (?:it )?may be\b/, '"must be": it is a rule'],
  [/\bboth\b.*\bmust hold\b/, 'what is returned'],
  [/\bis what it is\b/, 'what is returned'],
];

function filesBelow(folder: string, suffix: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => suffix.test(name) && !/node_modules|generated/.test(name))
    .map((name) => join(folder, name));
}

/** Literals of a file, without those of comments. */
function literalsOf(name: string): string[] {
  const code = readFileSync(join(root, name), 'utf8').replace(/^\s*(?:\/\/|\/?\*).*$/gm, '');
  return [...code.matchAll(/(['"`])((?:\\.|(?!\1)[^\\\n])+)\1/g)].map(([, , text = '']) => text);
}

const riddlesIn = (name: string, texts: readonly string[]) =>
  texts.flatMap((text) =>
    riddles
      .filter(([pattern]) => pattern.test(text))
      .map(([, instead]) => `${name}: "${text}": say ${instead}`),
  );

test('the names of tests have no riddles', () => {
  const files = filesBelow('test', /\.test\.tsx?$/).filter(
    (name) => !name.endsWith('words.test.ts'),
  );
  const names =
    /\b(?:test|it|describe)\b[^'"`\n]*(?:\([^()]*\)\s*)?\(\s*(['"`])((?:\\.|(?!\1).)+)\1/g;
  const found = files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return riddlesIn(
      file,
      [...text.matchAll(names)].map(([, , name = '']) => name),
    );
  });
  expect(found).toEqual([]);
});

test('the sentences of settings, errors, commands, pages and the log have no riddles', () => {
  const found = filesBelow('src', /\.tsx?$/).flatMap((name) => riddlesIn(name, literalsOf(name)));
  const settings = readFileSync(join(root, '.env.example'), 'utf8').split('\n');
  expect([...found, ...riddlesIn('.env.example', settings)]).toEqual([]);
});
