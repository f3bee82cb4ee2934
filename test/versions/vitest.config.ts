// npm run test:versions: what touches the database most, on Debian's PostgreSQL, the oldest that is supported.
import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const files = ['cache', 'counts', 'migrations', 'statements', 'visibility', 'walks', 'writes'];

export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [], globalSetup: [] } },
  defineConfig({
    test: {
      include: files.map((name) => `test/${name}.test.ts`),
      // The embedded database is the same everywhere.
      testNamePattern: /PostgreSQL/,
      globalSetup: ['test/versions/setup.ts'],
    },
  }),
);
