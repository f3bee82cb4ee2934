// The pages for people: the first one, the listing, and errors.
import type { Locator, Page } from 'playwright-core';
import { describe, expect, inject, test } from 'vitest';
import { findBarriers, findOverhang, openPage, updateImage } from '../support/browser/browser.ts';

const list = '/api/outfits/';
const heading = (page: Page) => page.getByRole('heading', { level: 1 });

test.each([
  [200, '/'],
  [200, list],
  [200, `${list}?ordering=-like_count&page=3`],
  [200, '/outfits/'],
  [200, '/outfits/?search=coat&video=true&created_from=2020-01-01'],
  [200, '/outfits/5'],
  [200, '/outfits/?user=3'],
  [200, '/api/outfits/5/'],
  [200, '/api/docs'],
  [400, '/outfits/?search=ab&likes_from=many'],
  [404, '/outfits/?page=999999'],
  [404, '/nothing'],
  [404, `${list}?page=999999`],
  [400, `${list}?ordering=nope`],
  [404, '/api/nothing/'],
])('the page with status %i at %s has no barriers, and fits the screen', async (status, path) => {
  const page = await openPage(path, { status });
  expect(await heading(page).count()).toBe(1);
  expect(await findBarriers(page)).toEqual([]);
  expect(await findOverhang(page)).toBeLessThanOrEqual(0);
  if (path === '/outfits/') await updateImage(page, 'gallery');
  // A small phone, or a laptop at 400 %. An emulated phone would make its window as wide as what overflows.
  await page.setViewportSize({ width: 320, height: 640 });
  expect(await findOverhang(page)).toBeLessThanOrEqual(0);
});

// Of all styles; what is not a colour is the same in the light.
test.each([
  [200, '/'],
  [200, list],
  [200, '/outfits/5'],
  [200, '/api/docs'],
  [400, '/outfits/?search=ab&likes_from=many'],
])('the page with status %i at %s can be read in the dark', async (status, path) => {
  const page = await openPage(path, { look: 'dark', status });
  expect(await findBarriers(page, ['color-contrast'])).toEqual([]);
});

test.each(['/outfits/', '/outfits/5', list])('%s has no barriers on a phone', async (path) => {
  const page = await openPage(path, { look: 'phone' });
  expect(await findBarriers(page)).toEqual([]);
  expect(await findOverhang(page)).toBeLessThanOrEqual(0);
});

test('all pictures of the listing are there to see', async () => {
  const page = await openPage('/outfits/');
  const images = page.getByRole('article').locator('.picture img');
  for (const image of await images.all()) await image.scrollIntoViewIfNeeded();
  const widths = () =>
    page.evaluate<number[]>(
      `Array.from(document.querySelectorAll('article .picture img'), (image) => image.naturalWidth)`,
    );
  await expect.poll(widths).not.toContain(0);
  expect(await widths()).toHaveLength(20);
});

describe('without JavaScript', () => {
  /** Clicks, and waits until the page behind it is there. */
  const follow = async (page: Page, target: Locator, url: string) => {
    await target.click();
    await page.waitForURL(({ href }) => href === url);
  };
  const step = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).first();

  test('pages are turned by links, and the order is chosen from a menu', async () => {
    const outfits = `${inject('base')}/outfits/`;
    const page = await openPage('/outfits/?ordering=id', { javaScript: false });
    await follow(page, step(page, 'Next'), `${outfits}?ordering=id&page=2`);
    await follow(page, step(page, 'Last'), `${outfits}?ordering=id&page=120`);
    expect(await step(page, 'Next').count()).toBe(0);
    expect(await page.getByRole('article').count()).toBeGreaterThan(0);
    await page.getByLabel('Order').selectOption('like_count');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/ordering=like_count/);
    expect(await page.getByLabel('Order').inputValue()).toBe('like_count');
  });

  test('outfits are searched, filtered, and turned over by number; a card leads on', async () => {
    const page = await openPage('/outfits/', { javaScript: false });
    await page.getByRole('searchbox').fill('coat');
    await page.getByText('Filters').click();
    await page.getByLabel('Video').selectOption('false');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/search=coat.*video=false/);
    const { searchParams } = new URL(page.url());
    expect(searchParams.get('ordering')).toBe('-created');
    await page.getByLabel('Page', { exact: true }).fill('3');
    await page.getByRole('button', { name: 'Go' }).click();
    await page.waitForURL(/page=3/);
    expect(await page.getByRole('searchbox').inputValue()).toBe('coat');
    expect(await page.title()).toMatch(/^Outfits with “coat”, page 3 of \d+$/);
    // The whole card is the link, but for the user.
    const card = page.getByRole('article').first();
    await card.click({ position: { x: 20, y: 100 } });
    await page.waitForURL(/\/outfits\/\d+\?.*search=coat/);
    await step(page, 'Next').click();
    await page.waitForURL(/offset=36/);
    await page.getByRole('link', { name: 'Back to the list' }).click();
    await page.waitForURL(/page=3.*#outfit-\d+$/);
    await page.getByRole('article').first().locator('.owner a').click();
    await page.waitForURL(/\?user=\d+$/);
  });

  test('a form of /api/docs sends a request, and links in its JSON are followed', async () => {
    const page = await openPage('/api/docs', { javaScript: false });
    await page.getByLabel('page', { exact: true }).fill('2');
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.waitForURL(/page=2/);
    const link = page.getByRole('link', { name: /\/api\/outfits\/\?ordering=&page=3"$/ });
    await follow(page, link, `${inject('base')}${list}?ordering=&page=3`);
  });
});

test('the way is found with the keyboard alone', async () => {
  const page = await openPage(list);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  const isInContent = await page.evaluate(
    'document.querySelector("main").contains(document.activeElement)',
  );
  expect(isInContent).toBe(true);
});

test('outfits are searched and opened with the keyboard alone', async () => {
  const page = await openPage('/outfits/');
  const tabTo = async (isThere: string) => {
    for (let tabs = 0; tabs < 40; tabs++) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(`document.activeElement.matches('${isThere}')`)) return;
    }
    expect.fail(`The keyboard does not reach ${isThere}.`);
  };
  await tabTo('#search');
  await page.keyboard.type('coat');
  await page.keyboard.press('Enter');
  await page.waitForURL(/search=coat/);
  await tabTo('article h2 a');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/outfits\/\d+\?/);
});
