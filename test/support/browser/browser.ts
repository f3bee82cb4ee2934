// Pages of the gateway in a real browser, and what must hold of each: no error in the console, nothing asked
// of other hosts.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect, inject, onTestFinished } from 'vitest';

const laptop = { width: 1280, height: 800 };

/** What people look with. */
const looks = {
  light: { viewport: laptop, colorScheme: 'light' },
  dark: { viewport: laptop, colorScheme: 'dark' },
  phone: {
    viewport: { width: 390, height: 844 },
    colorScheme: 'light',
    isMobile: true,
    hasTouch: true,
  },
} as const satisfies Record<string, BrowserContextOptions>;

export interface Visit {
  readonly look?: keyof typeof looks;
  /** Of the page. */
  readonly status?: number;
  /** Of what the page asks for: the browser calls any above 399 an error, in the console. */
  readonly mayGet?: number;
  readonly javaScript?: boolean;
  /** Of another gateway than that with the demonstration set. */
  readonly base?: string;
  /** It asks another origin, such as that of its gateway. */
  readonly isWithOthers?: boolean;
  /** Pictures are of another host here: none is got. */
  readonly isWithoutPictures?: boolean;
}

/** Opens a page of the gateway; the test fails in the end if anything went wrong in it. */
export async function openPage(
  path: string,
  {
    look = 'light',
    status = 200,
    mayGet = status,
    javaScript = true,
    base = inject('base'),
    isWithOthers = false,
    isWithoutPictures = false,
  }: Visit = {},
) {
  const browser = await chromium.connect(inject('browser'));
  const context = await browser.newContext({ ...looks[look], javaScriptEnabled: javaScript });
  const page = await context.newPage();
  const problems: string[] = [];
  const isForeign = (url: string) => {
    const { origin, protocol } = new URL(url);
    return origin !== base && !['data:', 'blob:'].includes(protocol);
  };
  // Where requests are changed, the browser keeps nothing in its cache: so only where they must be.
  if (isWithoutPictures) {
    await context.route(
      ({ href }) => isForeign(href),
      (route) => route.fulfill({ status: 200, contentType: 'image/svg+xml', body: '' }),
    );
  }
  context.on('request', (request) => {
    const isPicture = isWithoutPictures && request.resourceType() === 'image';
    if (isForeign(request.url()) && !isPicture && !isWithOthers)
      problems.push(`asks ${request.url()}`);
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    if (message.type() !== 'error') return;
    const [, got] = /responded with a status of (\d+)/.exec(message.text()) ?? [];
    if (Number(got) !== mayGet) problems.push(`${message.text()} (${message.location().url})`);
  });
  onTestFinished(async () => {
    await browser.close();
    expect(problems).toEqual([]);
  });
  const response = await page.goto(`${base}${path}`);
  expect(response?.status()).toBe(status);
  return page;
}

/**
 * What axe-core finds that keeps people from using a page, by WCAG and by good practice; folds are opened.
 * @param rules all, unless some are given
 */
export async function findBarriers(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Not as a script of the page, which its policy would not let in.
  await page.evaluate(axe.source);
  await page.evaluate(`for (const fold of document.querySelectorAll('details')) fold.open = true`);
  // What passes is told of thousands of elements, which takes longer than to look at them.
  const { violations } = await page.evaluate<Pick<axe.AxeResults, 'violations'>>(
    `axe.run(${JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })})
      .then(({ violations }) => ({ violations }))`,
  );
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** How much wider the content is than the screen: then people must scroll sideways. */
export function findOverhang(page: Page): Promise<number> {
  return page.evaluate('document.scrollingElement.scrollWidth - innerWidth');
}

/** With UPDATE_IMAGES=1, the page is the picture of the documents. */
export async function updateImage(page: Page, name: string): Promise<void> {
  if (process.env['UPDATE_IMAGES'] !== '1') return;
  const folder = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
}
