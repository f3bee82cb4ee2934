// What the benchmark says of its options, before it builds or installs anything.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../support/documents/page.ts';

const bench = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'bench/bench.js'), ...args],
    { encoding: 'utf8' },
  );
  return { status, stdout, stderr };
};

test('the benchmark explains every option', () => {
  const { status, stdout, stderr } = bench('--help');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  for (const option of ['rows', 'seconds', 'pairs', 'only', 'ten-million', 'quick', 'keep']) {
    expect(stdout).toMatch(new RegExp(`^  --${option} .+`, 'm'));
  }
});

const hint = '"npm run bench -- --help" lists the options.\n';
test.each([
  [['--fast'], `Unknown option '--fast'. ${hint}`],
  [['quick'], `Unexpected argument 'quick'. ${hint}`],
  [['--pairs', '0'], `--pairs must be a number of at least 1, but it is 0. ${hint}`],
])('the benchmark refuses %j with a sentence and exit code 2', (args, stderr) => {
  expect(bench(...args)).toEqual({ status: 2, stdout: '', stderr });
});
