// The viewer of the REST API at /api/docs: from this process alone, and it asks for real.
import { expect, test } from 'vitest';
import { findOverhang, lookNames, openPage, savePicture } from './browser.ts';

test.each(lookNames)('it shows the paths, and fits the screen: %s', async (look) => {
  const { page } = await openPage('/api/docs', { look });
  await page.getByText('/api/outfits/', { exact: true }).first().waitFor();
  expect(await findOverhang(page)).toBeLessThanOrEqual(0);
  await savePicture(page, 'api-docs', look);
});

test('a request is tried out, and its answer shown', async () => {
  const { page } = await openPage('/api/docs');
  await page.locator('.opblock-get .opblock-summary-control').first().click();
  await page.getByRole('button', { name: 'Try it out' }).click();
  const answered = page.waitForResponse((response) => response.url().includes('/api/outfits/'));
  await page.getByRole('button', { name: 'Execute' }).click();
  expect((await answered).status()).toBe(200);
  const live = page.locator('.live-responses-table');
  await live.getByText('"count": 2400').waitFor();
  expect(await live.locator('.response .response-col_status').innerText()).toContain('200');
});
