import { defineConfig } from 'vitest/config';

export default defineConfig({
  // graphql has two builds; the schema and the executor must come from the same one.
  resolve: { alias: { graphql: 'graphql/index.js' } },
  test: {
    include: ['test/**/*.test.ts'],
    // npm run test:soak and test:faults have configurations of their own.
    exclude: ['test/faults/**', 'test/soak/**'],
    provide: { lane: 'fast' },
    globalSetup: ['test/postgres.ts', 'test/embedded-template.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores, and each embedded database takes one.
    maxWorkers: 2,
  },
});
