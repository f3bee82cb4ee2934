// Search and hashtags: every script of the demonstration set, short words, hostile texts, and writes.
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { useGateway } from '../support/gateway.ts';
import { plain } from '../support/models/filter-model.ts';

const rows = [...generateOutfits({ outfits: 1200, users: 60 })];
const scripts = [
  ...['Latin', 'Cyrillic', 'Greek', 'Arabic', 'Hebrew', 'Devanagari'],
  ...['Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Emoji_Presentation'],
];
const textOf = ({ title, description }: OutfitRow) => `${title}\n${description}`.normalize();
const folded = rows.map((row) => ({ id: row.id, text: plain(textOf(row)) }));

/** A few words of a script in the texts, spread over the set. */
function wordsOf(script: string): string[] {
  const isOfScript = new RegExp(
    `\\p{${script === 'Emoji_Presentation' ? script : `sc=${script}`}}`,
    'u',
  );
  const words = rows.flatMap((row) => textOf(row).split(/\s+/u));
  const all = [...new Set(words.filter((word) => isOfScript.test(word)))];
  return all.filter((_word, index) => index % Math.ceil(all.length / 4) === 0);
}

interface Found {
  readonly searchTooShort: boolean;
  readonly count: number;
  readonly results: readonly { readonly databaseId: number }[];
}

// Folds as PostgreSQL 18, whose searches are in filters.test.ts.
const gateway = useGateway('embedded', rows, { PAGE_SIZE: '100' });

const ask = async (filter: object) => {
  const { data, errors } = await gateway.post(
    `query ($filter: OutfitFilter) {
      outfits(filter: $filter, ordering: ID_ASC) { searchTooShort count results { databaseId } }
    }`,
    { filter },
  );
  return {
    found: (data as { outfits: Found } | null)?.outfits,
    code: errors?.[0]?.extensions?.code,
    message: errors?.[0]?.message,
  };
};
const idsOf = async (filter: object) => {
  const { found, message } = await ask(filter);
  expect(message).toBeUndefined();
  return found?.results.map(({ databaseId }) => databaseId);
};

test.each(scripts)(
  'words in %s are found whole and in part, in upper and lower case',
  async (script) => {
    let answered = 0;
    for (const word of wordsOf(script)) {
      const letters = [...word];
      for (const size of [1, 2, 3, letters.length]) {
        const from = Math.max(0, Math.floor((letters.length - size) / 2));
        const part = letters.slice(from, from + size).join('');
        for (const search of [part, part.toUpperCase(), part.toLowerCase()]) {
          const { found, code } = await ask({ search });
          if (found?.searchTooShort) {
            expect([...search].length).toBeLessThan(3);
            continue;
          }
          expect(code).toBeUndefined();
          const ids = folded.filter(({ text }) => text.includes(plain(search))).map(({ id }) => id);
          expect(ids.length).toBeGreaterThan(0);
          expect(found?.count).toBe(ids.length);
          expect(found?.results.map(({ databaseId }) => databaseId)).toEqual(ids.slice(0, 100));
          answered++;
        }
      }
    }
    expect(answered).toBeGreaterThan(0);
  },
);

test('a few letters are long enough in some scripts, and too short in others', async () => {
  for (const search of ['古', '着る', 'の', 'シ', '옷', 'สี', '🖤', '🇫🇷', '✨']) {
    expect((await ask({ search })).found, search).toMatchObject({ searchTooShort: false });
  }
  for (const search of ['a', 'ab', 'Ö', 'ио', '#a', "'", '\\', 'abc de', 'x\u0301y\u0301']) {
    const nothing = { searchTooShort: true, count: 0, results: [] };
    expect(await ask({ search })).toMatchObject({ message: undefined, found: nothing });
  }
});

test.each([
  ['search', 'x'.repeat(101)],
  ['search', 'abc\0'],
  ['search', 'abc\ud800'],
  ['hashtags', ['']],
  ['hashtags', ['#']],
  ['hashtags', ['two words']],
  ['hashtags', ["a'b"]],
  ['hashtags', ['a'.repeat(101)]],
  ['hashtags', Array(101).fill('a')],
  ['ids', ['5']],
  ['ids', [Buffer.from('User:1').toString('base64')]],
  ['userIds', [Buffer.from('Outfit:1').toString('base64')]],
  ['likesFrom', -1],
  ['likesBelow', -1],
  ['quality', Array(101).fill(1)],
])('a wrong value of %s is an error that names it (%#)', async (field, value) => {
  expect(await ask({ [field]: value })).toMatchObject({
    code: 'BAD_USER_INPUT',
    message: expect.stringContaining(`filter.${field}`),
  });
});

describe('follows what is written', () => {
  const [template] = rows as [OutfitRow];
  const write = (id: number, title: string, description = '') =>
    saveOutfits(gateway.database.pool, [{ ...template, id, title, description }]);
  const run = (sql: string) => gateway.database.pool.query(sql);

  test('follows what is written of any user', async () => {
    await write(900_001, 'Quixotic jacket', '#zeppelin');
    expect(await idsOf({ search: 'quixotic' })).toEqual([900_001]);
    expect(await idsOf({ hashtags: ['ZEPPELIN'] })).toEqual([900_001]);
    await write(900_001, 'Plain jacket', '#Zeppelins');
    expect(await idsOf({ search: 'quixotic' })).toEqual([]);
    expect(await idsOf({ hashtags: ['zeppelin'] })).toEqual([]);
    await run("UPDATE outfits SET id = 900002, title = 'quiXotic' WHERE id = 900001");
    expect(await idsOf({ search: 'IXOTIC' })).toEqual([900_002]);
    await run('DELETE FROM outfits WHERE id = 900002');
    expect(await idsOf({ search: 'quixotic' })).toEqual([]);
    expect((await run('SELECT FROM outfit_texts WHERE outfit_id > 900000')).rowCount).toBe(0);
  });

  test('a like, or another field, does not write a text', async () => {
    await write(900_003, 'A text that stays');
    const place = 'SELECT ctid FROM outfit_texts WHERE outfit_id = 900003';
    const before = (await run(place)).rows;
    await run('UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = 900003');
    await run('UPDATE outfits SET quality = quality + 1, title = title WHERE id = 900003');
    expect((await run(place)).rows).toEqual(before);
  });

  test('follows what is written in texts that are endless, or hostile to the index', async () => {
    const many = Array.from({ length: 40_000 }, (_, index) =>
      String.fromCodePoint(0x20000 + index),
    );
    await write(900_004, `#${'Ａ'.repeat(5000)}`, many.join(''));
    await write(900_005, "'###tag' & \\ <-> :*", `\u0001###fake ${'#'.repeat(3000)}`);
    expect(await idsOf({ search: "'###tag'" })).toEqual([900_005]);
    expect(await idsOf({ hashtags: ['fake'] })).toEqual([900_005]);
    expect(await idsOf({ search: many.slice(100, 110).join('') })).toEqual([900_004]);
    expect(await idsOf({ hashtags: ['ａ'.repeat(100)] })).toEqual([900_004]);
  });
});
