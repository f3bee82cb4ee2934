import { defineConfig } from 'vitest/config';

export default defineConfig({
  // graphql has two builds; the schema and the executor must come from the same one.
  resolve: { alias: { graphql: 'graphql/index.js' } },
  test: {
    include: ['test/**/*.test.ts'],
    // npm run test:soak, test:faults, test:versions and test:browser have configurations of their own.
    exclude: ['test/browser/**', 'test/faults/**', 'test/soak/**'],
    provide: { lane: 'fast' },
    setupFiles: ['test/setup.ts'],
    // Each file would load all modules anew, a tenth of the time.
    isolate: false,
    globalSetup: ['test/postgres.ts', 'test/embedded-template.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores, and each embedded database takes one.
    maxWorkers: 2,
  },
});
