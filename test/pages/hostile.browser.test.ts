// Outfits whose text is written to do harm: what is made of them stays a page that can be read.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findBarriers, findOverhang, openPage } from '../support/browser/browser.ts';
import { makeFolder } from '../support/cli/folder.ts';
import { baseOf, clearAway, dist, run, runServer } from '../support/cli/process.ts';
import { type LegacyRecord, makeRecord } from '../support/legacy/legacy-service.ts';

const texts = {
  word: 'W'.repeat(10_000),
  words: 'outfit of the day '.repeat(560),
  markup: `</h2></article><script>alert(1)</script><img src=x onerror=alert(1)><style>*{display:none}</style>`,
  address: `javascript:alert(1) https://${'a'.repeat(200)}.example.com/${'b/'.repeat(400)}`,
  overridden: '\u202eoverridden\u202d \u2066isolated and never ended',
  arabic: 'إطلالة اليوم مع حقيبة #صيف',
  zalgo: `z${'\u0301\u0328\u0322'.repeat(300)}algo`,
  emoji: '👩‍👩‍👧‍👦🏳️‍🌈'.repeat(200),
  lines: 'line\n'.repeat(500),
  spaces: `\u00a0\u2003\u3000\u200b`,
  nothing: '',
};

const records: LegacyRecord[] = Object.entries(texts).map(([name, text], index) => {
  const record = makeRecord(index + 1, { title: text, description: text, private: false });
  return {
    ...record,
    likes: index === 0 ? 2_147_483_647 : index,
    user: {
      ...record.user,
      id: index + 1,
      username: name.repeat(20),
      first_name: text,
      last_name: text,
    },
  };
});

const folder = makeFolder(afterAll);
let base: string;
beforeAll(async () => {
  const file = join(folder, 'records.json');
  writeFileSync(file, JSON.stringify(records));
  // Pictures of these outfits are not there: a card without one stays a card.
  const environment = { DATA_DIR: join(folder, 'data'), MEDIA_URL: 'https://media.example.com' };
  const importing = run([`${dist}commands/cli.js`, 'import', file], environment);
  // On a busy machine it reports its progress.
  expect(await importing.ended, importing.errors()).toBe(0);
  base = await baseOf(runServer(environment));
});
afterAll(clearAway);

test('text that is made to break the listing does not', async () => {
  const page = await openPage('/outfits/?ordering=id', { base, isWithoutPictures: true });
  expect(await page.getByRole('article').count()).toBe(records.length);
  expect(await page.locator('script, main style').count()).toBe(0);
  expect(await findOverhang(page)).toBeLessThanOrEqual(0);
  // No card is longer than a screen or two, whatever is in it.
  const heights = await page.evaluate<number[]>(
    `Array.from(document.querySelectorAll('article'), (card) => card.offsetHeight)`,
  );
  expect(Math.max(...heights)).toBeLessThan(1_700);
  // With all folds open, too.
  expect(await findBarriers(page)).toEqual([]);
  expect(await findOverhang(page)).toBeLessThanOrEqual(0);
});

test('neither does it break the pages outside of the listing, on a small screen', async () => {
  const page = await openPage('/outfits/', { base, isWithoutPictures: true });
  await page.setViewportSize({ width: 320, height: 640 });
  const paths = records.flatMap(({ id }) => [`/outfits/${id}`, `/outfits/?user=${id}`]);
  for (const path of ['/outfits/?ordering=id', ...paths]) {
    const response = await page.goto(`${base}${path}`);
    expect([path, response?.status()]).toEqual([path, 200]);
    expect([path, await findOverhang(page)]).toEqual([path, 0]);
    expect(await page.locator('script, main style').count()).toBe(0);
  }
});
