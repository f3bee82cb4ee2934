// npm run test:versions: what touches the database most, on each PostgreSQL between the oldest that is supported,
// which is Debian's, and the newest, which has all other tests.
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const { globalSetup: _newest, include: _fast, exclude: _others, ...shared } = base.test ?? {};
const project = (version: string, lane: 'fast' | 'versions', files: readonly string[]) => ({
  resolve: base.resolve ?? {},
  test: {
    ...shared,
    provide: { lane },
    name: `PostgreSQL ${version}`,
    include: files.map((name) => `test/${name}.test.ts`),
    // Each worker loads all modules anew.
    maxWorkers: 2,
    // The embedded database is the same everywhere.
    testNamePattern: /PostgreSQL/,
    globalSetup: ['test/support/versions/setup.ts'],
  },
});

/** All SQL of the migrations, under a storm of writes. */
const migrations = ['database/migrations', 'outfits/counts'];
/** What the gateway sends, and what it reads of the server to invalidate by. */
const statements = ['graphql/answer-cache', 'outfits/statements', 'outfits/writes'];

export default defineConfig({
  test: {
    projects: [
      project('15', 'fast', [...migrations, ...statements, 'database/upgrade.versions']),
      project('16', 'versions', migrations),
      project('17', 'versions', migrations),
    ],
  },
});
