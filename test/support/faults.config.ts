// npm run test:faults: what takes servers down, freezes them or fills disks, apart from the other tests.
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';
import { LongestFirst } from './longest-first.ts';

const filesOf = (names: readonly string[]) => names.map((name) => `test/${name}.faults.test.ts`);
/** What has to be over within seconds, and mostly waits: no more at a time than there are cores. */
const prompt = filesOf(['database/stops', 'process/shutdown', 'admission/slow-queries']);
/** What loads the machine, and compares times: behind all others. */
const alone = filesOf(['admission/overload']);

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
        exclude: [...prompt, ...alone],
        // Two cores: they freeze and kill servers while clients wait.
        maxWorkers: 3,
      }),
      project('prompt', 1, { include: prompt, maxWorkers: 2 }),
      project('alone', 2, { include: alone, maxWorkers: 1 }),
    ],
  },
});
