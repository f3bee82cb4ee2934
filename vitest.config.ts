import { defineConfig } from 'vitest/config';
import { findDatabaseFolder } from './test/support/databases/database-folder.js';
import { LongestFirst } from './test/support/longest-first.ts';

// For the processes that tests run in, too.
process.env['TEST_DATABASE_FOLDER'] ??= findDatabaseFolder();

export default defineConfig({
  // graphql has two builds; the schema and the executor must come from the same one.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    include: ['test/**/*.test.ts'],
    // npm run test:soak, test:faults, test:versions and test:browser have configurations of their own.
    exclude: ['test/**/*.{browser,faults,soak,versions}.test.ts'],
    provide: { lane: 'fast' },
    setupFiles: ['test/support/setup.ts'],
    // Each file would load all modules anew, a tenth of the time.
    isolate: false,
    globalSetup: ['test/support/databases/global-setup.ts'],
    sequence: { sequencer: LongestFirst },
    // For a busy machine: only what hangs shall come to its end.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // CI ends with the messages of what failed: they say what was found.
    chaiConfig: { truncateThreshold: 500 },
    // How long what is waited for may take: long, for a busy machine.
    expect: { poll: { timeout: 60_000 } },
    // Two cores; but most tests also wait.
    maxWorkers: 4,
  },
});
