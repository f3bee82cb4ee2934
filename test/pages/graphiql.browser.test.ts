// GraphiQL in a browser: its examples, links that are shared, and a phone.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { findBarriers, findOverhang, openPage, updateImage } from '../support/browser/browser.ts';
import { signIn } from '../support/http/tokens.ts';

/** The button that asks. */
const play = '.graphiql-execute-button';

/** Its editors. */
const editors = {
  query: '.graphiql-query-editor',
  answer: '.result-window',
} as const;

const modelIn = (name: keyof typeof editors) =>
  `document.querySelector('${editors[name]}')?.closest('section, div').querySelector('.CodeMirror')?.CodeMirror`;

/** All of the text in an editor: on the screen there may be a part of it. */
const textIn = (page: Page, name: keyof typeof editors): Promise<string> =>
  page.evaluate(`${modelIn(name)}?.getValue() ?? ''`);

const answerOf = (page: Page) => textIn(page, 'answer');

// In the dark only the colours are others; a phone has another layout.
test.each([
  ['light', undefined],
  ['dark', ['color-contrast']],
  ['phone', undefined],
] as const)('nothing in GraphiQL keeps people out, whatever is open: %s', async (look, rules) => {
  const page = await openPage('/graphql', { look });
  const expectOpen = async () => expect(await findBarriers(page, rules)).toEqual([]);
  await page.click(play);
  await expect.poll(() => answerOf(page)).toContain('"count": 2400');
  expect(await findOverhang(page)).toBeLessThanOrEqual(0);
  if (look === 'light') await updateImage(page, 'graphiql');
  await expectOpen();
  if (look === 'phone') return expectRoom(page);
  await choose(page, 'Search');
  await page.click(play);
  await expect.poll(() => answerOf(page)).toContain('"count":');
  const open = (name: RegExp) => page.getByRole('button', { name }).click();
  await open(/History/);
  await page.getByRole('button', { name: 'Search', exact: true }).first().waitFor();
  await expectOpen();
  await open(/GraphiQL Explorer/);
  await page.getByText('hasVideo').waitFor();
  await expectOpen();
  await open(/Documentation Explorer/);
  await page.getByRole('link', { name: 'Query', exact: true }).click();
  await page.getByText('outfitConnection', { exact: true }).first().waitFor();
  await expectOpen();
  await open(/settings/i);
  await page.getByRole('dialog').waitFor();
  await expectOpen();
});

/** Question and answer are wide enough to read, and what runs it can be touched. */
async function expectRoom(page: Page): Promise<void> {
  const { width: screen, height } = page.viewportSize() ?? expect.fail();
  for (const area of [editors.query, editors.answer]) {
    const box = await page.locator(area).boundingBox();
    expect(box?.width).toBeGreaterThan(screen / 2);
  }
  const button = (await page.locator(play).boundingBox()) ?? expect.fail();
  expect(button.x + button.width).toBeLessThanOrEqual(screen);
  expect(button.y + button.height).toBeLessThanOrEqual(height);
}

test('a shared link brings query and variables', async () => {
  const query = 'query Second($page: Int) { outfits(page: $page) { page } }';
  const variables = '{ "page": 7 }';
  const page = await openPage(`/graphql?${new URLSearchParams({ query, variables })}`);
  await expect.poll(() => textIn(page, 'query')).toBe(query);
  await page.locator(`${editors.query} textarea`).focus();
  await page.keyboard.press('Control+Enter');
  await expect.poll(() => answerOf(page)).toContain('"page": 7');
  expect(new URL(page.url()).searchParams.get('query')).toBe(query);
});

const buttons = 'header fieldset button';

/** Chooses an example, and waits until GraphiQL knows its operation. */
async function choose(page: Page, name: string): Promise<void> {
  await page.locator(buttons, { hasText: name }).click();
  const named = new RegExp(`^(?:query|subscription) ${name}\\b`, 'm');
  await expect.poll(() => textIn(page, 'query')).toMatch(named);
  // Not before: at first, GraphiQL writes the query that it begins with.
  const addressed = () => new URL(page.url()).searchParams.get('query');
  await expect.poll(addressed).toMatch(named);
}

test('every example can be chosen and run, or says that it needs a token', async () => {
  const page = await openPage('/graphql', { mayGet: 401 });
  await page.waitForSelector(play);
  const names = await page.locator(buttons).allInnerTexts();
  expect(names.length).toBeGreaterThan(3);
  for (const name of names) {
    await choose(page, name);
    await page.click(play);
    await expect
      .poll(() => answerOf(page), { message: name })
      .toMatch(/"data": \{|UNAUTHENTICATED/);
  }
});

test('the time and the cost of an answer are told', async () => {
  const page = await openPage('/graphql');
  await page.click(play);
  await expect
    .poll(() => page.locator('output').innerText())
    .toMatch(/^200 · \d+ ms · cost \d+ of \d+$/);
});

test('an example begins without the answers of the one before', async () => {
  const page = await openPage('/graphql');
  await page.waitForSelector(play);
  await choose(page, 'Live');
  await page.click(play);
  await expect.poll(() => answerOf(page)).toContain('"data"');
  await choose(page, 'MostLiked');
  expect(await page.locator(play).getAttribute('aria-label')).toMatch(/^Execute/);
  expect(await page.locator('output').innerText()).toBe('');
  await page.click(play);
  await expect.poll(() => answerOf(page)).toContain('"count"');
});

test('a token serves the viewer, and is kept nowhere', async () => {
  const page = await openPage('/graphql');
  const { authorization } = await signIn(1);
  const token = (authorization ?? '').replace('Bearer ', '');
  await page.getByLabel('Token').fill(token);
  await choose(page, 'Viewer');
  await page.click(play);
  await expect.poll(() => answerOf(page)).toMatch(/"username": "\w/);
  const kept = await page.evaluate<string>(
    'JSON.stringify([localStorage, sessionStorage, document.cookie])',
  );
  expect(kept).toContain('viewer');
  expect(kept).not.toContain(token);
  expect(page.url()).not.toContain(token);
});

test('the header leads to the first page', async () => {
  const page = await openPage('/graphql');
  await page.getByRole('link', { name: 'Outfit gateway' }).click();
  await page.waitForURL(({ pathname }) => pathname === '/');
});
