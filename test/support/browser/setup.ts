// One Chromium and one gateway with the demonstration set, for all tests of the lane.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserServer, chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { baseOf, clearAway, runServer } from '../cli/process.ts';
import { secret } from '../http/tokens.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the gateway is, such as http://localhost:4000. */
    base: string;
    /** Where the browser is controlled. */
    browser: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const browser = await launch();
  const gateway = await startGateway().catch(async (error) => {
    await browser.close();
    throw error;
  });
  project.provide('browser', browser.wsEndpoint());
  project.provide('base', gateway.base);
  return async () => {
    await browser.close();
    await gateway.stop();
  };
}

async function launch(): Promise<BrowserServer> {
  const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
  if (!existsSync(executablePath)) {
    throw new Error(
      `There is no Chromium at ${executablePath}: install it ("apt-get install chromium"), or set CHROMIUM to its path.`,
    );
  }
  return chromium.launchServer({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'].concat([
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ]),
  });
}

/** The built gateway with default settings, and a secret, so that viewers can sign in. */
async function startGateway() {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-browser-'));
  const server = runServer({ DATA_DIR: folder, AUTH_JWT_SECRET: secret });
  return {
    base: await baseOf(server),
    stop: async () => {
      await clearAway();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
