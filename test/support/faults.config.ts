// npm run test:faults: what takes servers down, freezes them or fills disks, apart from the other tests.
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const { exclude: _others, ...shared } = base.test ?? {};

export default defineConfig({
  resolve: base.resolve ?? {},
  // Two cores; but they wait most of the time: for servers that are frozen, killed or started.
  test: { ...shared, include: ['test/**/*.faults.test.ts'], maxWorkers: 4 },
});
