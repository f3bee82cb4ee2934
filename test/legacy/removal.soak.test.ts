// src/legacy can be deleted together with the lines that wire it: tried on a copy of the work tree.
import { execFile, execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const copy = mkdtempSync(join(tmpdir(), 'without-legacy-'));

const deleted = [
  ...['src/legacy', 'test/legacy'],
  ...['src/commands/verify.ts', 'src/commands/replay.ts', 'src/commands/options/comparison.ts'],
];

/** A test that imports what is deleted goes with it. */
const spoken = /'[./]*\/src\/(?:legacy\/|commands\/(?:verify|replay|options\/comparison)\.ts)/;

/** The lines that wire it, each found exactly once. */
const wiring: Readonly<Record<string, readonly RegExp[]>> = {
  'src/app.ts': [
    /^ *if \(legacy\?\.interceptUnroutable\(.*\n/gm,
    /^ *\/\/ .*forwarded answers.*\n *const legacy =[^;]*;\n/gm,
    /^ *\/\/ Comparisons .*\n *await legacy\?\.compareWith\([^;]*;\n/gm,
    /^\/\*\* The REST paths for comparisons\. \*\/\n[\s\S]*?\n}\n\n/gm,
  ],
  'src/commands/check.ts': [/^import \{ acceptedOf \}.*\n/gm, /^ *acceptedOf\(.*\n/gm],
  'src/commands/run.ts': [
    /^ *verify: .*import\('\.\/verify\.ts'\)\],\n/gm,
    /^ *replay: \[[^\]]*\],\n/gm,
  ],
};

const readCopy = (file: string) => readFileSync(join(copy, file), 'utf8');

beforeAll(() => {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' });
  for (const path of [...files.split('\0').filter(Boolean), 'src/generated']) {
    cpSync(join(root, path), join(copy, path), { recursive: true, force: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
});

afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** Gives what it printed, where it failed. */
async function failureOf(...[program, ...args]: [string, ...string[]]): Promise<string> {
  const env = Object.entries(process.env).filter(([name]) => !/^VITEST|^TEST$/.test(name));
  const options = { cwd: copy, env: Object.fromEntries(env), maxBuffer: 2 ** 26 };
  return promisify(execFile)(program, args, options).then(
    () => '',
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  );
}

const bin = (name: string) => join('node_modules/.bin', name);

describe('a gateway without src/legacy', () => {
  it('is wired to it by a few lines of three files', () => {
    for (const path of deleted) rmSync(join(copy, path), { recursive: true });
    for (const test of readdirSync(join(copy, 'test'), { encoding: 'utf8', recursive: true })) {
      const speaksOfIt = test.endsWith('.test.ts') && spoken.test(readCopy(join('test', test)));
      if (speaksOfIt) rmSync(join(copy, 'test', test));
    }
    for (const [file, patterns] of Object.entries(wiring)) {
      let text = readCopy(file);
      for (const pattern of patterns) {
        expect(text.match(pattern), `${file}: ${pattern}`).toHaveLength(1);
        text = text.replace(pattern, '');
      }
      writeFileSync(join(copy, file), text);
    }
  });

  it('passes the type check', async () => {
    expect(await failureOf(bin('tsc'), '-p', '.')).toBe('');
  });

  it('is bundled', async () => {
    expect(await failureOf(process.execPath, '.ci/bundle.js')).toBe('');
    expect(readCopy('dist/server.js')).not.toBe('');
  });

  it('passes the tests that do not speak of it', async () => {
    const tests = ['test/rest/rest.test.ts', 'test/graphql/graphql.test.ts'];
    expect(await failureOf(bin('vitest'), 'run', ...tests)).toBe('');
  });
});
