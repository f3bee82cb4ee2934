// The apps of examples/ in a browser, against a gateway of another origin.
import { randomUUID } from 'node:crypto';
import { createReadStream, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findBarriers, openPage } from '../support/browser/browser.ts';
import { baseOf, publish, run, runServer } from '../support/cli/process.ts';
import { examples, installExamples, npm } from '../support/examples.ts';
import { closeServer, listen } from '../support/http/listen.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const types: Record<string, string> = {
  ...{ '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript' },
};
/** The built apps. */
const site = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '', 'http://localhost');
  const file = join(examples, 'dist', pathname, pathname.endsWith('/') ? 'index.html' : '');
  const status = existsSync(file) ? 200 : 404;
  response.writeHead(status, { 'content-type': types[extname(file)] ?? 'text/plain' });
  if (status === 200) createReadStream(file).pipe(response);
  else response.end();
});
/** Files by their addresses: it takes what is signed, as a store with the protocol of S3. */
const stored = new Map<string, string>();
const store = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('access-control-allow-methods', 'PUT');
  response.setHeader('access-control-allow-headers', 'content-type');
  request.setEncoding('utf8').on('data', (text) => stored.set(pathname, text));
  request.on('end', () => {
    const isSigned = searchParams.get('X-Amz-SignedHeaders') === 'content-type;host';
    response.writeHead(request.method === 'OPTIONS' || isSigned ? 200 : 403).end();
  });
});

const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-examples-'));
const baseOfServer = async (server: Server) => `http://127.0.0.1:${await listen(server)}`;
let origin: string;
let gateway: ReturnType<typeof runServer>;
let uploads: ReturnType<typeof run>;
let base: string;
let token: string;

beforeAll(async () => {
  await installExamples();
  origin = await baseOfServer(site);
  gateway = runServer({ DATA_DIR: folder, AUTH_JWT_SECRET: secret, CORS_ORIGINS: origin });
  base = await baseOf(gateway);
  uploads = run(
    ['uploads/server.js'],
    {
      ...{ PORT: '0', ORIGIN: origin, GATEWAY: base, BUCKET: await baseOfServer(store) },
      ...{ AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' },
    },
    examples,
  );
  const [, uploadsBase = ''] = await uploads.until(/(http:\S+)\/uploads/);
  await npm(['run', 'build'], { VITE_GATEWAY: base, VITE_UPLOADS: uploadsBase });
  token = String((await signIn(5))['authorization']).replace('Bearer ', '');
}, 300_000);
afterAll(async () => {
  for (const { child } of [gateway, uploads]) child.kill('SIGKILL');
  for (const server of [site, store]) await closeServer(server);
  rmSync(folder, { recursive: true, force: true });
});

const open = (app: string) =>
  openPage(`/${app}/?gateway=${base}#token=${token}`, { base: origin, isWithOthers: true });
const cards = (page: Page) => page.getByRole('article');
const count = (page: Page) => page.getByRole('status').first();

describe.each(['apollo', 'urql', 'relay', 'events'])('the app in %s/', (app) => {
  test('shows a like and an unlike at once, and takes back what the gateway refuses', async () => {
    const page = await open(app);
    await expect.poll(() => cards(page).count()).toBe(8);
    expect(await findBarriers(page)).toEqual([]);
    const heart = cards(page).nth(2).getByRole('button', { name: '♥' });
    await expect.poll(() => heart.getAttribute('aria-pressed')).toBe('false');
    const before = Number((await heart.textContent())?.slice(2));
    const shown = async () => [await heart.getAttribute('aria-pressed'), await heart.textContent()];
    const [liked, unliked] = [
      ['true', `♥ ${before + 1}`],
      ['false', `♥ ${before}`],
    ];
    let release: (() => void) | undefined;
    const isWrite = (text: string | null) => /(?:un)?likeOutfit/.test(text ?? '');
    await page.route(`${base}/graphql`, async (route) => {
      if (!isWrite(route.request().postData())) return route.fallback();
      await new Promise<void>((settle) => {
        release = settle;
      });
      return route.continue();
    });
    for (const expected of [liked, unliked]) {
      const answered = page.waitForResponse((response) => isWrite(response.request().postData()));
      await heart.click();
      // The gateway has not got it yet.
      await expect.poll(shown).toEqual(expected);
      await expect.poll(() => release).toBeDefined();
      release?.();
      release = undefined;
      await answered;
      await expect.poll(shown).toEqual(expected);
    }
    await page.unroute(`${base}/graphql`);
    await page.route(`${base}/graphql`, (route) =>
      isWrite(route.request().postData())
        ? route.fulfill({
            headers: { 'access-control-allow-origin': origin },
            json: { errors: [{ message: 'No.', extensions: { code: 'FORBIDDEN' } }], data: null },
          })
        : route.fallback(),
    );
    await heart.click();
    await expect.poll(shown).toEqual(unliked);
  });

  test('says beside each field what is wrong, shows what it creates, and not what it deletes', async () => {
    const page = await open(app);
    await expect.poll(() => count(page).textContent()).toMatch(/^\d+$/);
    const before = Number(await count(page).textContent());
    const field = (label: RegExp) => page.getByLabel(label);
    const errorAt = async (label: RegExp) => {
      const id = await field(label).getAttribute('aria-describedby');
      return page.locator(`#${id}`).textContent();
    };
    const title = `New in ${app}`;
    await field(/^Title/).fill(title);
    await field(/^Background/).fill('RED');
    await page.getByRole('button', { name: 'Publish' }).click();
    await expect
      .poll(() => errorAt(/^Background/))
      .toBe('A colour is #rgb or #rrggbb, in lower case, or empty.');
    expect(await errorAt(/^Image/)).toBe('This field is required.');
    expect(await errorAt(/^Title/)).toBe('');
    await field(/^Background/).fill('#f1e7da');
    await field(/^Image/).fill('outfits/2b1d3c4e-0000-4000-8000-000000000001.png');
    await page.getByRole('button', { name: 'Publish' }).click();
    const first = cards(page).first();
    await expect.poll(() => first.textContent()).toContain(title);
    await expect.poll(() => count(page).textContent()).toBe(String(before + 1));
    await first.getByRole('button', { name: 'Delete' }).click();
    await expect.poll(() => first.textContent()).not.toContain(title);
    await expect.poll(() => count(page).textContent()).toBe(String(before));
  });

  test('publishes once when the answer was lost and the button is pressed again, and says what a field is refused for', async () => {
    const page = await open(app);
    await expect.poll(() => count(page).textContent()).toMatch(/^\d+$/);
    const before = Number(await count(page).textContent());
    const isCreate = (text: string | null) => /createOutfit/.test(text ?? '');
    const headers = { 'access-control-allow-origin': origin };
    const answers: ('lost' | 'refused')[] = ['lost', 'refused'];
    await page.route(`${base}/graphql`, async (route) => {
      if (!isCreate(route.request().postData())) return route.fallback();
      const answer = answers.shift();
      if (answer === undefined) return route.continue();
      if (answer === 'lost') {
        await route.fetch();
        // Not aborted, which the browser would call an error.
        return route.fulfill({ headers, contentType: 'application/json', body: '{' });
      }
      const errors = [{ message: 'Not now.', path: ['createOutfit'] }];
      return route.fulfill({ headers, json: { errors, data: { createOutfit: null } } });
    });
    const publish = page.getByRole('button', { name: 'Publish' });
    const image = page.getByLabel(/^Image/);
    const title = page.getByLabel(/^Title/);
    await title.fill('Once');
    // One of its own for each outfit: the pages of the apps after this show all of them.
    const nameImage = () => image.fill(`outfits/${randomUUID()}.png`);
    if (app === 'events') await nameImage();
    else {
      const file = { name: 'me.png', mimeType: 'image/png', buffer: Buffer.from('once') };
      await page.getByLabel('or a file').setInputFiles(file);
    }
    const failure = () => page.getByRole('alert').last().textContent();
    await publish.click();
    await expect.poll(failure).not.toBe('');
    await publish.click();
    await expect.poll(failure).toContain('Not now.');
    expect(await title.inputValue()).toBe('Once');
    await publish.click();
    await expect.poll(() => title.inputValue()).toBe('');
    await expect.poll(() => count(page).textContent()).toBe(String(before + 1));
    // Another input is another request.
    answers.push('lost');
    await title.fill('Twice');
    await nameImage();
    await publish.click();
    await expect.poll(failure).not.toBe('');
    await title.fill('Twice, corrected');
    await nameImage();
    await publish.click();
    await expect.poll(() => title.inputValue()).toBe('');
    await expect.poll(() => count(page).textContent()).toBe(String(before + 3));
  });

  test('shows how many outfits there are as soon as somebody else publishes one', async () => {
    const page = await open(app);
    await expect.poll(() => count(page).textContent()).toMatch(/^\d+$/);
    const before = Number(await count(page).textContent());
    expect((await publish(base)).status).toBe(201);
    await expect.poll(() => count(page).textContent()).toBe(String(before + 1));
  });

  test.runIf(app !== 'events')('shows more outfits, each once', async () => {
    const page = await open(app);
    for (const size of [16, 24]) {
      await page.getByRole('button', { name: 'Show more' }).click();
      await expect.poll(() => cards(page).count()).toBe(size);
    }
    const images = await cards(page).locator('> img').all();
    const sources = await Promise.all(images.map((image) => image.getAttribute('src')));
    expect(new Set(sources).size).toBeGreaterThan(20);
  });

  test.runIf(app !== 'events')(
    'sends a file to the store, and its key to the gateway',
    async () => {
      const page = await open(app);
      await page.getByLabel('Title').fill(`With a file, in ${app}`);
      const file = { name: 'me.png', mimeType: 'image/png', buffer: Buffer.from(`of ${app}`) };
      await page.getByLabel('or a file').setInputFiles(file);
      await page.getByRole('button', { name: 'Publish' }).click();
      const first = cards(page).first();
      await expect.poll(() => first.textContent()).toContain(`With a file, in ${app}`);
      const source = new URL((await first.locator('> img').getAttribute('src')) ?? '');
      expect(stored.get(source.pathname.replace('/media', ''))).toBe(`of ${app}`);
    },
  );
});
