// npm run test:versions: what touches the database most, on each PostgreSQL between the oldest that is supported,
// which is Debian's, and the newest, which has all other tests.
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const { globalSetup: _newest, include: _fast, exclude: _others, ...shared } = base.test ?? {};
const project = (version: string, maxWorkers: number, files: readonly string[]) => ({
  resolve: base.resolve ?? {},
  test: {
    ...shared,
    name: `PostgreSQL ${version}`,
    include: files.map((name) => `test/${name}.test.ts`),
    // Each worker loads all modules anew.
    maxWorkers,
    // Projects that run at the same time share their workers.
    sequence: { ...shared.sequence, groupOrder: maxWorkers - 1 },
    // The embedded database is the same everywhere.
    testNamePattern: /PostgreSQL/,
    globalSetup: ['test/support/versions/setup.ts'],
  },
});

/** All SQL of the migrations, and the functions that they make. */
const migrations = ['database/migrations', 'database/functions'];
/** The same under a storm of writes; what the gateway sends. */
const statements = ['outfits/counts', 'outfits/statements', 'outfits/writes'];

export default defineConfig({
  test: {
    projects: [
      project('15', 2, [...migrations, ...statements, 'database/upgrade.versions']),
      project('16', 1, migrations),
      project('17', 1, migrations),
    ],
  },
});
