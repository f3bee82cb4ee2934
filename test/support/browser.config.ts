// npm run test:browser: the pages, GraphiQL and the viewer of the API in Chromium, on the demonstration set.
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

export default defineConfig({
  resolve: base.resolve ?? {},
  test: {
    include: ['test/**/*.browser.test.ts'],
    globalSetup: ['test/support/browser/setup.ts'],
    isolate: false,
    // axe-core takes long on a machine that has other work.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    // One browser and one gateway answer all.
    maxWorkers: 2,
  },
});
