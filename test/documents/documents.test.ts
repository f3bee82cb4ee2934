// README.md and docs/ as a reader meets them. What they say to type is typed in by documents.soak.test.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { deadLinks, isPrinted, notRun, pages, readPage, root } from '../support/documents/page.ts';

const read = (name: string) => readFileSync(join(root, name), 'utf8');

describe('the documents', () => {
  test('the documents have a README that is read in two minutes', () => {
    expect(read('README.md').split('\n').length).toBeLessThan(182);
  });

  test('the documents lead from README to every page of docs/', () => {
    for (const page of pages.slice(1)) expect(read('README.md')).toContain(`](${page})`);
  });

  test('the documents have links to files and headings that are there', () => {
    const texts = [
      'CONTRIBUTING.md',
      'SECURITY.md',
      'CHANGELOG.md',
      'bench/README.md',
      'src/outfits',
    ];
    expect(texts.concat('README.md', 'docs').flatMap((name) => deadLinks(root, name))).toEqual([]);
  });

  test('the documents name tests that are there, in the threat model and in what a version promises', () => {
    for (const name of ['docs/threat-model.md', 'docs/upgrading.md']) {
      const named = [...read(name).matchAll(/`([\w/.-]+\.test\.ts)`((?:,? "[^"]+")*)/g)];
      expect(named.length).toBeGreaterThan(5);
      for (const [, file, titles = ''] of named) {
        const text = read(`test/${file}`);
        for (const [, title] of titles.matchAll(/"([^"]+)"/g)) expect(text).toContain(`'${title}'`);
      }
    }
  });

  test('the documents have commands that are run, but for few', () => {
    const steps = pages.flatMap((name) => readPage(name).steps);
    for (const [command, reason] of notRun) {
      const count = steps.filter((step) => command.test(step.command)).length;
      expect(count, `${command}: ${reason}`).toBeGreaterThan(0);
      expect(count, `${command}: ${reason}`).toBeLessThan(5);
    }
  });
});

test('the table of docs/graphql.md has every error code, and no other', () => {
  const files = ['errors.ts', 'graphql/errors.ts', 'graphql/plugins/document-limits.ts'];
  const source = files.map((name) => read(`src/${name}`)).join();
  const given = new Set([...source.matchAll(/'([A-Z][A-Z_]{5,})'/g)].map(([, code]) => code));
  // Yoga's own.
  given.add('OPERATION_RESOLUTION_FAILURE');
  const rows = read('docs/graphql.md').matchAll(/^\| (`[A-Z_]+`[^|]*) \| \d/gm);
  const listed = [...rows].flatMap(([, codes = '']) => codes.split(/[`, ]+/).filter(Boolean));
  expect(listed.toSorted()).toEqual([...given].toSorted());
  expect(listed.length).toBeGreaterThan(30);
});

test('code on a page that names a file of examples/ is in that file', () => {
  const wrong: string[] = [];
  let count = 0;
  for (const page of ['docs/clients.md', 'docs/writing.md']) {
    const blocks = read(page).matchAll(/^( *)```\w+ title="(examples\/[^"]+)"\n(.*?)^ *```$/gms);
    for (const [, indent = '', path = '', code = ''] of blocks) {
      const file = read(path);
      const parts = code.replace(new RegExp(`^${indent}`, 'gm'), '').split(/^\/\/ …$/m);
      for (const part of parts) if (!file.includes(part.trim())) wrong.push(`${page}: ${path}`);
      count += 1;
    }
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(4);
});

describe('what a page says that is printed', () => {
  test('has content', () => {
    const outputs = pages.flatMap((name) => readPage(name).steps).filter(({ output }) => output);
    expect(outputs.filter(({ output }) => !/[^\s…]/.test(output ?? ''))).toEqual([]);
    expect(outputs.length).toBeGreaterThan(0);
  });

  // What is the same is tried by the pages, in documents.soak.test.ts: they would fail.
  test.each([
    ['{ "a": "b c" }', '{"a":"bc"}'],
    ['{ "a": 1 }', '{"a":1,"b":2}'],
    ['count: 2', 'count: 23'],
    ['a.b', 'axb'],
    ['2 records read in 0.1 s', '3 records read in 0.1 s'],
    ['one\n…\ntwo', 'one\nthree'],
    ['{"a":1}', ''],
    ['[17:42:05] INFO: one two', '[17:42:05] INFO: onetwo'],
    ['', 'one'],
  ])('%j is not %j', (said, printed) => {
    expect(isPrinted(said, printed)).toBe(false);
  });

  test('must be of a kind that is known, behind a command', () => {
    expect(() => readPage('a.md', '```python\nprint()\n```\n')).toThrow(/a\.md:1: it is not known/);
    expect(() => readPage('a.md', 'It says\n\n```json\n{}\n```\n')).toThrow(/a\.md:3: nothing/);
  });
});
