// An old Node.js is told so by every entry, before anything else.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../..', import.meta.url);
const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));

/** What npm start and the commands run. */
const entries = Object.entries<string>(scripts).filter(([, script]) => /^node dist\//.test(script));

const pretence =
  "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } })";

test('every entry ends with one sentence', () => {
  expect(entries.map(([name]) => name)).toContain('start');
  for (const [name, script] of entries) {
    const [, ...words] = script.split(' ');
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(pretence)}`, ...words],
      // A setting that the entry itself would complain of, were it to come so far.
      { cwd: root, env: { PATH: process.env['PATH'], PORT: 'none' }, encoding: 'utf8' },
    );
    expect({ name, status, stdout, stderr }).toEqual({
      name,
      status: 1,
      stdout: '',
      stderr: 'Node.js 18.20.8 is too old: use 20.19 or newer.\n',
    });
  }
});
