// npm run test:faults: what takes servers down, freezes them or fills disks, apart from the other tests.
import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      include: ['test/faults/*.test.ts'],
      testTimeout: 120_000,
      // One file at a time: the load of one must not be what another measures.
      maxWorkers: 1,
    },
  }),
);
