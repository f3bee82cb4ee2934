// src/legacy can be deleted together with the lines that wire it: tried on a copy of the work tree.
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { baseOf, demoEnvironment, listing, run } from '../support/cli/process.ts';

const root = join(import.meta.dirname, '../..');
const copy = join(tmpdir(), `without-legacy-${process.pid}`);

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
    /^ *const isFollowed =.*\n/gm,
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

test('a gateway without src/legacy is checked, bundled and started', async () => {
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' });
  for (const path of [...files.split('\0').filter(Boolean), 'src/generated']) {
    cpSync(join(root, path), join(copy, path), { recursive: true, force: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

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
  expect(await failureOf(bin('tsc'), '-p', '.')).toBe('');
  expect(await failureOf(process.execPath, '.ci/bundle.js')).toBe('');
  const environment = { PORT: '0', ...(await demoEnvironment()) };
  const base = await baseOf(run([join(copy, 'dist/server.js')], environment));
  expect((await listing(base)).count).toBeGreaterThan(0);
  expect((await fetch(`${base}/graphql?query={outfits{count}}`)).status).toBe(200);
});
