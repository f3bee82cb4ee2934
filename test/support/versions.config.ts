// npm run test:versions: what touches the database most, on each PostgreSQL between the oldest that is supported,
// which is Debian's, and the newest, which has all other tests.
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const { globalSetup: _newest, include: _fast, exclude: _others, ...shared } = base.test ?? {};
const project = (version: string, files: readonly string[]) => ({
  resolve: base.resolve ?? {},
  test: {
    ...shared,
    name: `PostgreSQL ${version}`,
    include: files.map((name) => `test/${name}.test.ts`),
    // The embedded database is the same everywhere.
    testNamePattern: /PostgreSQL/,
    globalSetup: ['test/support/versions/setup.ts'],
  },
});

const statements = [
  ...['database/migrations', 'graphql/answer-cache', 'outfits/counts', 'outfits/statements'],
];

export default defineConfig({
  test: {
    projects: [
      project('15', [...statements, 'outfits/writes', 'database/upgrade.versions']),
      project('16', statements),
      project('17', statements),
    ],
  },
});
