// npm run test:soak: storms, random inputs and long walks, in amounts that npm test has no time for.
import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const files = [
  'legacy/verify',
  // Their twins on the embedded database.
  ...['transfer/export', 'transfer/import'],
];

export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [], provide: {} } },
  defineConfig({
    test: {
      include: [...files.map((name) => `test/${name}.test.ts`), 'test/**/*.soak.test.ts'],
      provide: { lane: 'soak' },
      testTimeout: 600_000 * Number(process.env['SOAK_TIMES'] ?? 1),
    },
  }),
);
