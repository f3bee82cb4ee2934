// npm run test:faults: what takes servers down, freezes them or fills disks, apart from the other tests.
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';
import { LongestFirst } from './longest-first.ts';

/** What loads the machine, and compares times: behind all others. */
const alone = ['test/admission/overload.faults.test.ts'];

const { globalSetup, include: _fast, exclude: _others, ...shared } = base.test ?? {};
const project = (name: string, order: number, files: object) => ({
  resolve: base.resolve ?? {},
  test: { ...shared, name, sequence: { groupOrder: order }, ...files },
});

export default defineConfig({
  test: {
    globalSetup: globalSetup ?? [],
    sequence: { sequencer: LongestFirst },
    projects: [
      project('together', 0, {
        include: ['test/**/*.faults.test.ts'],
        exclude: alone,
        // Two cores; but they wait most of the time: for servers that are frozen, killed or started.
        maxWorkers: 4,
      }),
      project('alone', 1, { include: alone, maxWorkers: 1 }),
    ],
  },
});
