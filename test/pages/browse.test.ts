// The pages outside of /api/: search and filters in a form without a script, an outfit, a user, and errors that help.
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { ConfigError, readConfig } from '../../src/config/config.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { openBeside, openForTest, useGateway } from '../support/gateway.ts';
import { accept, elementsOf, hrefsOf, textsOf } from '../support/http/html.ts';
import { sendRaw, statusesIn } from '../support/http/raw-http.ts';

const rows = [...generateOutfits({ outfits: 130, users: 4 })];
const [template] = rows as [OutfitRow];
const gateway = useGateway('PostgreSQL', rows);

async function get(url: string, status = 200, on = gateway): Promise<string> {
  const { statusCode, headers, body } = await on.get(url, { accept });
  expect([url, statusCode]).toEqual([url, status]);
  expect(headers['content-type']).toBe('text/html; charset=utf-8');
  return body;
}

/** Numbers of the outfits on a page, by their links. */
const idsOn = (page: string) =>
  [
    ...hrefsOf(page)
      .join('\n')
      .matchAll(/^\/outfits\/(\d+)\?.*offset=/gm),
  ].map(([, id]) => Number(id));

/** What the forms of a page would send, as a browser does, without what is typed. */
function fieldsOf(page: string): Record<string, string>[] {
  return [...page.matchAll(/<form.*?<\/form>/gs)].map(([form]) => {
    expect(form).toMatch(/^<form (?:class="menu" )?method="get">/);
    const inputs = elementsOf(form).filter(({ name }) => name === 'input');
    const selects = [...form.matchAll(/<select.*?<\/select>/gs)].map(([select]) => {
      const [own, ...options] = elementsOf(select);
      const chosen = options.find(({ attributes }) => 'selected' in attributes) ?? options[0];
      return [own?.attributes['name'], chosen?.attributes['value'] ?? ''];
    });
    const named = inputs.map(({ attributes: { name, value = '' } }) => [name, value]);
    return Object.fromEntries([...named, ...selects]);
  });
}

test.each([
  [{}, {}],
  [{ search: 'the' }, { search: 'the' }],
  [{ likes_from: '3' }, { likesFrom: 3 }],
  [{ video: 'true' }, { hasVideo: true }],
  [
    { video: 'false', device: 'ios' },
    { hasVideo: false, creationDevices: ['IOS'] },
  ],
  [
    { created_from: '2020-01-01', created_before: '2024-02-29' },
    { createdFrom: '2020-01-01T00:00:00Z', createdBefore: '2024-02-29T00:00:00Z' },
  ],
  [{ hashtag: '#ootd', ordering: 'like_count' }, { hashtags: ['ootd'] }],
])('the form asks for %j, and the page has it in its address', async (typed, filter) => {
  const [form = {}] = fieldsOf(await get('/outfits/'));
  expect(form).toMatchObject({ search: '', ordering: '-created', video: '', device: '' });
  for (const name of Object.keys(typed)) expect(form).toHaveProperty(name);
  const sent: Record<string, string> = { ...form, ...typed };
  // A browser follows: no empty field is left in the address.
  const { statusCode, headers } = await gateway.get(`/outfits/?${new URLSearchParams(sent)}`, {
    accept,
  });
  const given = new URLSearchParams(Object.entries(sent).filter(([, value]) => value !== ''));
  expect([statusCode, headers['location']]).toEqual([302, `/outfits/?${given}`]);
  const page = await get(`/outfits/?${given}`);
  // It stays in the form.
  expect(fieldsOf(page)[0]).toEqual(sent);
  const ordering = 'ordering' in typed ? 'LIKE_COUNT_ASC' : null;
  const { data } = await gateway.post(
    `query ($filter: OutfitFilter, $ordering: OutfitOrdering) {
       outfits(filter: $filter, ordering: $ordering) { count results { databaseId } } }`,
    { filter, ordering },
  );
  const results = idsOn(page).map((databaseId) => ({ databaseId }));
  const [, count] = /class="count">(\d+) outfits?</.exec(page) ?? [];
  expect(data).toEqual({ outfits: { count: Number(count), results } });
});

test.each([
  ['/outfits/?device=&search=why?now', 302, '/outfits/?search=why%3Fnow'],
  ['/outfits/?search=&page=', 302, '/outfits/'],
  // The last value counts, and is that of the first page.
  ['/outfits/?page=3&page=', 200, undefined],
  ['/outfits/?ordering=nope&search=', 400, undefined],
  ['/api/outfits/?ordering=', 200, undefined],
  ['//evil.example/?a=', 404, undefined],
  ['/\\evil.example/?a=', 404, undefined],
  ['/outfits//evil.example/?a=', 404, undefined],
])('empty fields at %s: %s to %s', async (target, status, location) => {
  for (const method of ['GET', 'HEAD']) {
    // As bytes: other clients would normalize the target.
    const head = await sendRaw(
      gateway.app,
      `${method} ${target} HTTP/1.1\r\nHost: shop.test\r\nAccept: ${accept}\r\nConnection: close\r\n\r\n`,
    );
    expect([statusesIn(head), /^location: (.*)\r$/m.exec(head)?.[1]]).toEqual([[status], location]);
    expect(head).toMatch(/^vary: Accept\b/m);
    expect(/^allow:/m.test(head)).toBe(status !== 404);
  }
});

test('a page is reached by links and by its number, and the rest of the address stays', async () => {
  const page = await get('/outfits/?ordering=id&page=2&utm_source=a%22b');
  expect(idsOn(page)[0]).toBe(21);
  expect(textsOf(page, 'title')).toEqual(['Outfits, page 2 of 7']);
  const to = (number: number) => `?ordering=id&page=${number}&utm_source=a%22b`;
  expect(hrefsOf(page)).toEqual(expect.arrayContaining([1, 3, 7].map(to)));
  const [, form = {}] = fieldsOf(page);
  expect(form).toEqual({ ordering: 'id', utm_source: 'a"b', page: '2' });
  const third = await get(`/outfits/?${new URLSearchParams({ ...form, page: '3' })}`);
  expect(idsOn(third)[0]).toBe(41);
  expect(idsOn(await get('/outfits/?ordering=id&page=last')).at(-1)).toBe(rows.at(-1)?.id);
});

test('a card leads to the outfit and to its user, whose outfits have pages', async () => {
  const list = await get('/outfits/');
  const { results } = (await gateway.get('/api/outfits/')).json();
  expect(idsOn(list)).toEqual(results.map(({ id }: { id: number }) => id));
  for (const { user } of results) expect(hrefsOf(list)).toContain(`/outfits/?user=${user.id}`);
  const outfit = (await gateway.get(`/api/outfits/${template.id}/`)).json();
  const user = `/outfits/?user=${outfit.user.id}`;
  const page = await get(`/outfits/${template.id}`);
  expect(textsOf(page, 'h1')).toEqual([outfit.title || `Outfit ${outfit.id}`]);
  expect(hrefsOf(page)).toEqual(
    expect.arrayContaining([outfit.image_key, user, `/outfits/#outfit-${template.id}`]),
  );
  const mine = rows.filter(({ userId }) => userId === template.userId).map(({ id }) => id);
  const found: number[] = [];
  for (let number = 1; number <= Math.ceil(mine.length / 20); number++) {
    found.push(...idsOn(await get(`${user}&ordering=id&page=${number}`)));
  }
  expect(found).toEqual(mine.toSorted((a, b) => a - b));
  const { first_name, last_name } = outfit.user;
  const ofUser = await get(`${user}&search=the`);
  expect(textsOf(ofUser, 'h1')).toEqual([`Outfits of ${first_name} ${last_name} with “the”`]);
  expect(fieldsOf(ofUser)[0]).toMatchObject({ user: String(outfit.user.id) });
  // The row of others by this person has none of anybody else, and not the outfit itself.
  const [, more = ''] = page.split('id="more"');
  expect(idsOn(more).length).toBeGreaterThan(3);
  for (const id of idsOn(more)) expect(mine.filter((one) => one !== template.id)).toContain(id);
});

test('a search lists the people of this name, each with a link to their outfits', async () => {
  const [{ username, firstName }] = rows.map(({ user }) => user) as [OutfitRow['user']];
  const people = async (url: string, on = gateway) =>
    /<h2 id="people">.*?<\/section>/s.exec(await get(url, 200, on))?.[0] ?? '';
  for (const words of [username, firstName.toUpperCase()]) {
    const found = await people(`/outfits/?${new URLSearchParams({ search: words })}`);
    expect(found).toContain(username);
    expect(hrefsOf(found)).toContain(`/outfits/?user=${template.userId}`);
  }
  expect(await people('/outfits/')).toBe('');
  expect(await people('/outfits/?search=zzz')).toBe('');
  const named = Array.from({ length: 21 }, (_, id) => ({ ...template, id, title: username }));
  const second = `/outfits/?search=${username}&page=2`;
  expect(await people(second, await openForTest('PostgreSQL', named))).toContain(username);
});

test('the outfits of a search follow each other by links, and lead back to their page of it', async () => {
  const search = 'ordering=id&search=the';
  const pages = await Promise.all([1, 2].map((page) => get(`/outfits/?${search}&page=${page}`)));
  const ids = pages.flatMap(idsOn);
  expect(ids).toHaveLength(40);
  const stepOn = (page: string, title: string) => {
    const [, href = ''] = new RegExp(`href="([^"]*)">${title}<`).exec(page) ?? [];
    return href.replaceAll('&amp;', '&');
  };
  const [first = ''] = hrefsOf(pages[0] ?? '').filter((href) => /^\/outfits\/\d/.test(href));
  let url = first;
  const walked: number[] = [];
  for (const id of ids) {
    const page = await get(url);
    walked.push(Number(/^\/outfits\/(\d+)/.exec(url)?.[1]));
    const [back = ''] = hrefsOf(page).filter((href) => href.endsWith(`#outfit-${id}`));
    expect(idsOn(await get(back.split('#')[0] ?? ''))).toContain(id);
    const previous = stepOn(page, 'Previous');
    expect(previous.split('?')[0]).toBe(walked.length > 1 ? `/outfits/${walked.at(-2)}` : '');
    url = stepOn(page, 'Next');
  }
  expect(walked).toEqual(ids);
  // An address without its place in a list is that of the outfit all the same.
  expect(textsOf(await get(`/outfits/${ids[30]}`), 'span')).toContain('Next');
});

test('hashtags are links to the outfits that have them', async () => {
  const tagged = { ...template, id: 1, description: 'Café #été_2024, #ＯＯＴＤ; no#w <b>#x</b> #' };
  const other = await openForTest('PostgreSQL', [tagged]);
  const hrefs = hrefsOf(await get('/outfits/1', 200, other)).filter((href) =>
    href.startsWith('/outfits/?hashtag'),
  );
  const tags = hrefs.map((href) => new URLSearchParams(href.split('?')[1]).get('hashtag'));
  expect(tags).toEqual(['été_2024', 'ＯＯＴＤ', 'w', 'x']);
  for (const href of hrefs) expect([href, idsOn(await get(href, 200, other))]).toEqual([href, [1]]);
});

test('the page of an outfit with a video plays it, and loads it from nowhere else', async () => {
  const row = rows.find(({ videoKey }) => videoKey !== null) as OutfitRow;
  const { headers, body } = await gateway.get(`/outfits/${row.id}`, { accept });
  const [video] = elementsOf(body).filter(({ name }) => name === 'video');
  expect(video?.attributes['src']).toBe(`https://video.example.com/${row.videoKey}`);
  expect(headers['content-security-policy']).toContain('; media-src https://video.example.com;');
  expect(await get(`/outfits/${rows.find((one) => !one.videoKey)?.id}`)).not.toContain('<video');
});

test('an outfit has what other services show of a link to it', async () => {
  const { title, image_key } = (await gateway.get(`/api/outfits/${template.id}/`)).json();
  const page = await get(`/outfits/${template.id}?ordering=id&offset=3`);
  const metas = elementsOf(page).filter(({ attributes }) => attributes['property']);
  const preview = metas.map(({ attributes: { property, content } }) => [property, content]);
  expect(Object.fromEntries(preview)).toMatchObject({
    'og:title': expect.stringContaining(title || `Outfit ${template.id}`),
    'og:url': `http://shop.test/outfits/${template.id}`,
    'og:image': image_key,
  });
});

test.each(['nowhere', '99999999999', '-1', '1e999'])(
  'with the offset %s, an outfit leads to outfits and to the first page of the list',
  async (offset) => {
    const hrefs = hrefsOf(await get(`/outfits/${template.id}?ordering=id&offset=${offset}`));
    const back = hrefs.find((href) => href.includes('#outfit-')) ?? '';
    expect(back).toBe(`/outfits/?ordering=id#outfit-${template.id}`);
    expect(hrefs.filter((href) => /NaN|Infinity/.test(href))).toEqual([]);
  },
);

test.each(['/', '/outfits/', '/outfits/1'])('OPTIONS %s has a page of its own', async (url) => {
  const headers = { accept: 'text/html' };
  const answer = await gateway.app.inject({ method: 'OPTIONS', url, headers });
  expect([answer.statusCode, answer.body]).toEqual([200, expect.stringContaining('renders')]);
});

test.each(['/outfits/?search=the&page=9999', '/outfits/?page=99999999999999999999'])(
  'past the end, %s leads to the last page',
  async (url) => {
    const last = hrefsOf(await get(url, 404)).find((href) => href.endsWith('page=last')) ?? '';
    expect(idsOn(await get(`/outfits/${last}`)).length).toBeGreaterThan(0);
  },
);

test.each([
  ['search', 'ab', 'Search: Use words of three characters or more'],
  ['search', 'x'.repeat(101), 'at most 100 characters'],
  ['search', '\0', 'Search: Use words'],
  ['likes_from', 'many', 'Likes, at least: Enter a whole number'],
  ['likes_from', '-1', 'Likes, at least: Enter a whole number'],
  ['created_from', '2024-02-30', 'Published from: Enter a date'],
  ['video', 'perhaps', 'Video: Choose one of the list.'],
  ['hashtag', 'a b', 'Hashtag: Use up to 100 letters'],
  ['ordering', 'nope', 'Order: Choose one of the list.'],
])('%s=%s is a 400 in the words of the form, which is filled in', async (name, value, words) => {
  const page = await get(`/outfits/?${new URLSearchParams({ [name]: value })}`, 400);
  expect(textsOf(page, 'p').join('\n')).toContain(words);
  const wrong = elementsOf(page).filter(({ attributes }) => attributes['aria-invalid'] === 'true');
  expect(wrong.map(({ attributes: { id } }) => id)).toEqual([name]);
  expect(page).toContain(`id="${wrong[0]?.attributes['aria-describedby']}"`);
  const isTyped = !['video', 'ordering'].includes(name);
  if (isTyped) expect(fieldsOf(page)[0]).toMatchObject({ [name]: value });
});

test.each(['/outfits/999999', '/outfits/x', '/outfits/99999999999', '/users/x', '/users/-1'])(
  '%s is a 404 with a way back',
  async (url) => {
    expect(hrefsOf(await get(url, 404))).toContain('/outfits/');
    expect((await gateway.get(url)).json()).toEqual({ detail: 'Not found.' });
  },
);

test.each(['/', '/outfits/?search=the', '/outfits/1'])(
  'programs get the record at %s as JSON, and only read it',
  async (url) => {
    const { headers, statusCode } = await gateway.get(url);
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({ 'content-type': 'application/json', vary: 'Accept' });
    for (const method of ['POST', 'DELETE', 'PUT'] as const) {
      expect((await gateway.app.inject({ method, url })).statusCode).toBe(405);
    }
  },
);

test.each([
  ['/outfits?page=2', '/outfits/?page=2'],
  ['/outfits/7/', '/outfits/7'],
  ['/users/7', '/outfits/?user=7'],
  ['/users/7/', '/outfits/?user=7'],
])('%s leads to %s', async (url, location) => {
  const { headers, statusCode } = await gateway.get(url, { accept });
  expect([statusCode, headers['location']]).toEqual([301, location]);
});

test('the first row of pictures is loaded first, and the page is small', async () => {
  const response = await gateway.get('/outfits/', { accept });
  expect(response.rawPayload.length).toBeLessThan(60_000);
  const pictures = elementsOf(response.body)
    .filter(({ name, attributes }) => name === 'img' && attributes['width'] === '400')
    .map(({ attributes: { loading, fetchpriority } }) => loading ?? fetchpriority);
  expect(pictures).toEqual([...Array(4).fill('high'), ...Array(16).fill('lazy')]);
  for (const url of ['/outfits/', '/api/outfits/']) {
    const { rawPayload } = await gateway.get(url, { accept, 'accept-encoding': 'gzip' });
    expect(rawPayload.length).toBeLessThan(16_000);
  }
});

test('the rate limit holds for pages too', async () => {
  const limited = await openBeside(gateway, { RATE_LIMIT: '1/day' });
  await get('/outfits/', 200, limited);
  await get('/outfits/', 429, limited);
});

test.each([
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "coat' onfocus='alert(1)",
  '\u202eoverridden\u2066',
  '</title></style><b>',
  '{{7*7}} &lt;b&gt;',
])('%s is text, where it is searched for', async (search) => {
  const page = await get(`/outfits/?${new URLSearchParams({ search })}`);
  for (const { name, attributes } of elementsOf(page)) {
    expect(['script', 'img', 'b']).not.toContain(name);
    expect(attributes).not.toHaveProperty('onfocus');
  }
  const title = [`Outfits with “${search.replace(/[\u202e\u2066]/g, '')}”`];
  expect([textsOf(page, 'title'), textsOf(page, 'h1')]).toEqual([title, title]);
  expect(fieldsOf(page)[0]).toMatchObject({ search });
});

test.each(['/outfits/', '/users/', '/users/login/'])('the old service does not get %s', (path) => {
  expect(() => readConfig({ LEGACY_PATHS: `/api/,${path}` })).toThrow(ConfigError);
});
