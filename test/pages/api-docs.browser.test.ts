// The viewer of the REST API at /api/docs: from this process alone, and it asks for real.
import { describe, expect, test } from 'vitest';
import { findBarriers, findOverhang, lookNames, openPage } from '../support/browser/browser.ts';

test.each(lookNames)('it shows the paths, and fits the screen: %s', async (look) => {
  const page = await openPage('/api/docs', { look });
  await page.getByText('/api/outfits/', { exact: true }).first().waitFor();
  expect(await findOverhang(page)).toBeLessThanOrEqual(0);
  expect(await findBarriers(page)).toEqual([]);
});

describe.each(lookNames)('nothing in it keeps people out: %s', (look) => {
  const open = async (method: string) => {
    const page = await openPage('/api/docs', { look });
    const operation = page.locator(`.opblock-${method}`).first();
    await operation.locator('.opblock-summary-control').click();
    await operation.getByText('The rate limit is exceeded.').waitFor();
    return page;
  };

  test('not an answer that has been tried out', async () => {
    const page = await open('get');
    const tryOut = page.getByRole('button', { name: 'Try it out' });
    const execute = page.getByRole('button', { name: 'Execute' });
    // A click is lost when the viewer replaces the button between its two halves.
    const isTriedOut = async () => {
      if (await tryOut.isVisible()) await tryOut.click();
      return execute.isVisible();
    };
    await expect.poll(isTriedOut).toBe(true);
    await execute.click();
    await page.locator('.live-responses-table').getByText('"count": 2400').waitFor();
    expect(await findBarriers(page)).toEqual([]);
  });

  test('neither bodies nor the token', async () => {
    const page = await open('post');
    expect(await findBarriers(page, '.opblock-post')).toEqual([]);
    await page.getByRole('button', { name: 'Authorize' }).click();
    await page.getByRole('heading', { name: 'Available authorizations' }).waitFor();
    expect(await findBarriers(page, '.dialog-ux')).toEqual([]);
  });
});
