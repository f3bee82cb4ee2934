// README.md and every page of docs/, typed in from top to bottom, each in a folder like a checkout.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Shell } from '../support/cli/shell.ts';
import { makeDatabase } from '../support/databases/test-database.ts';
import {
  isPrinted,
  notRun,
  type Page,
  pages,
  readPage,
  root,
  type Step,
} from '../support/documents/page.ts';
import { findFreePort } from '../support/http/free-port.js';
import {
  type LegacyService,
  makeRecords,
  startLegacyService,
} from '../support/legacy/legacy-service.ts';

/** Pages that begin with an empty PostgreSQL database. */
const empty = new Set([
  'docs/counting.md',
  'docs/importing.md',
  'docs/upgrading.md',
  ...pages.filter((name) => name.startsWith('docs/switching')),
]);
/** Pages about the embedded database. All others begin with the demonstration set in PostgreSQL, which starts faster. */
const embedded = new Set(['README.md', 'docs/install.md', 'docs/scaling.md']);

const scratch = mkdtempSync(join(tmpdir(), 'outfit-docs-test-'));
const isServer = /(?:npm start|dist\/server\.js)(?: -- .*)?$/;
const isEndless = /--follow|curl -N/;
/** What needs a gateway that runs. */
const asks = /localhost:|\$PORT/;
/** Of the other gateway, and of one that is compared with it: each would draw pictures of its own. */
const MEDIA_URL = 'https://media.example.com';
/** Milliseconds that a command has to print what the page says. */
const stepTimeout = 60_000;

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const commands = Object.entries<string>(scripts).filter(([, text]) =>
  text.startsWith('node dist/'),
);

// What is installed and built is; curl shows no progress where it writes to a file.
const npmItself = `npm() { if [ "$1" = ci ]; then return; fi; command npm "$@"; }`;
const curl = `curl() { command curl -sS "$@"; }`;
/** What npm would run; npm itself takes longer than most of it. */
const scriptsAlone = `
declare -A scripts=(${commands.map(([name, text]) => `[${name}]='${text}'`).join(' ')})
npm() {
  if [ "$1" = ci ]; then return; fi
  while [[ "$1" = run || "$1" = -s ]]; do shift; done
  local script=\${scripts[$1]:-command npm run $1}
  shift
  if [ "$1" = -- ]; then shift; fi
  $script "$@"
}`;

let legacy: LegacyService;
let source: { readonly base: string; close(): Promise<void> };

beforeAll(async () => {
  legacy = await startLegacyService(makeRecords(204));
  legacy.fault = 'missing header';
  const port = await findFreePort();
  const { environment, remove } = await makeDatabase(inject('postgresUrl'), inject('postgresDemo'));
  const shell = openCheckout('source', { PORT: String(port), MEDIA_URL, ...environment });
  await ready(port, await shell.start('npm start'));
  source = { base: `http://localhost:${port}`, close: () => shell.close().then(remove) };
}, 5 * stepTimeout);
afterAll(async () => {
  await legacy.close();
  await source.close();
  rmSync(scratch, { recursive: true, force: true });
}, 5 * stepTimeout);

/** A shell in a folder with all of the checkout but its data. */
function openCheckout(name: string, env: Record<string, string>) {
  const [folder, outputs] = [join(scratch, name), join(scratch, `${name}-outputs`)];
  for (const path of [folder, outputs]) mkdirSync(path, { recursive: true });
  for (const entry of readdirSync(root)) {
    if (entry !== '.data' && entry !== '.env') symlinkSync(join(root, entry), join(folder, entry));
  }
  const shared = {
    npm_config_loglevel: 'silent',
    npm_config_update_notifier: 'false',
    // As on a terminal.
    LOG_FORMAT: 'pretty',
  };
  const npm = name === 'README.md' ? npmItself : scriptsAlone;
  return new Shell(folder, outputs, { ...shared, ...env }, `${npm}\n${curl}`);
}

async function ready(port: number | string, server: { output(): string }): Promise<void> {
  const isReady = () =>
    fetch(`http://localhost:${port}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  for (const start = Date.now(); !(await isReady()); await sleep(50)) {
    if (Date.now() - start > stepTimeout) throw new Error(`It does not start: ${server.output()}`);
  }
}

/** The text of a page with the addresses of this run. */
async function readHere(name: string, databaseUrl: string) {
  const ports = new Map<string, string>();
  for (const port of ['4000', '8080', '9100', '9464'])
    ports.set(port, String(await findFreePort()));
  const { host, pathname } = new URL(databaseUrl);
  const text = readPage(name)
    .text.replace(
      /(localhost:|PORT=)(4000|8080|9100|9464)\b/g,
      (_match, before: string, port: string) => before + ports.get(port),
    )
    .replace(/postgresql:\/\/\S+@(?:localhost:5432|db\.example\.com)\/\w+/g, databaseUrl)
    .replace(/\w+ on (?:localhost|db\.example\.com):5432/g, `${pathname.slice(1)} on ${host}`)
    .replaceAll('https://old.example.com', legacy.base)
    .replace(/(?<!PUBLIC_URL=)https:\/\/shop\.example\.com(?=\/api|$|[ '"])/gm, source.base);
  return { page: readPage(name, text), port: String(ports.get('4000')) };
}

const typedOf = ({ steps }: Page) =>
  steps.filter((step) => !notRun.some(([line]) => line.test(step.command)));

describe('what a page says to type prints what it says', () => {
  const typed = pages.filter((name) => typedOf(readPage(name)).length > 0);
  test.each(typed)('%s', { timeout: 300_000 }, async (name) => {
    const [isEmpty, isEmbedded] = [empty.has(name), embedded.has(name)];
    const template = isEmpty || isEmbedded ? undefined : inject('postgresDemo');
    const testDatabase = await makeDatabase(inject('postgresUrl'), template);
    const databaseUrl = testDatabase.environment['DATABASE_URL'] ?? '';
    const { page, port } = await readHere(name, databaseUrl);
    const env = {
      PORT: port,
      ...(isEmbedded ? {} : { DATABASE_URL: databaseUrl, SEED: isEmpty ? 'none' : 'demo' }),
      ...(isEmpty ? { MEDIA_URL } : {}),
    };
    const shell = openCheckout(name.replaceAll('/', '-'), env);
    let server: Awaited<ReturnType<Shell['start']>> | undefined;
    const start = async (command: string) => {
      await server?.end();
      server = await shell.start(command);
      await ready(/(?<!_)PORT=(\d+)/.exec(command)?.[1] ?? port, server);
    };
    try {
      const steps = typedOf(page);
      if (isEmpty) await shell.run('npm run migrate');
      const first = steps.findIndex(({ command }) => isServer.test(command));
      const before = first < 0 ? steps : steps.slice(0, first);
      if (before.some(({ command }) => asks.test(command))) await start('npm start');
      for (const step of steps) {
        if (isServer.test(step.command)) {
          await start(step.command);
          await waitFor(step, () => server?.output() ?? '');
        } else if (isEndless.test(step.command)) await follow(shell, step);
        else await type(shell, step);
      }
    } finally {
      await shell.close();
      await testDatabase.remove();
    }
  });
});

async function type(shell: Shell, step: Step): Promise<void> {
  const { output, failed } = await shell.run(step.command);
  // What has an output may fail as it says; what has none must print none, too.
  if (!step.isHidden && !isPrinted(step.output ?? '', output)) differ(step, output);
  if (step.output === undefined) {
    expect({ place: step.place, failed, output }).toMatchObject({ failed: '' });
  }
}

/** Something that goes on: until it has printed what the page says. */
async function follow(shell: Shell, step: Step): Promise<void> {
  const { output, end } = await shell.start(step.command);
  await waitFor(step, output);
  await end();
}

/** Until something that goes on has printed what the page says, whatever it prints afterwards. */
async function waitFor(step: Step, output: () => string): Promise<void> {
  const said = step.output === undefined ? '' : `${step.output.trimEnd()}…`;
  const start = Date.now();
  while (!isPrinted(said, output())) {
    if (Date.now() - start > stepTimeout) differ(step, output());
    await sleep(50);
  }
}

function differ({ place, command, output = '(nothing)' }: Step, printed: string): never {
  throw new Error(
    `${place}: $ ${command}\n--- the page says\n${output}\n--- it prints\n${printed}`,
  );
}
