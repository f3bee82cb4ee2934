// The pages outside of /api/: search and filters in a form without a script, an outfit, a user, and errors that help.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { ConfigError, readConfig } from '../../src/config.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { databaseKinds, openGateway, type TestGateway } from '../support/gateway.ts';
import { elementsOf, textsOf } from '../support/http/html.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
const rows = [...generateOutfits({ outfits: 130, users: 4 })];
const [template] = rows as [OutfitRow];

async function pageOf(gateway: TestGateway, url: string, status = 200, headers = {}) {
  const response = await gateway.get(url, { accept, ...headers });
  expect([url, response.statusCode]).toEqual([url, status]);
  expect(response.headers['content-type']).toBe('text/html; charset=utf-8');
  return response.body;
}

const hrefsOf = (page: string) =>
  elementsOf(page).flatMap(({ name, attributes: { href } }) =>
    name === 'a' && href !== undefined ? [href] : [],
  );

/** Numbers of the outfits on a page, by their links. */
const idsOn = (page: string) =>
  hrefsOf(page).flatMap((href) => /^\/outfits\/(\d+)$/.exec(href)?.slice(1).map(Number) ?? []);

/** What the forms of a page would send, as a browser does, without what is typed. */
function fieldsOf(page: string): Record<string, string>[] {
  return [...page.matchAll(/<form.*?<\/form>/gs)].map(([form]) => {
    expect(form).toMatch(/^<form (?:class="menu" )?method="get">/);
    const elements = elementsOf(form);
    const inputs = elements.filter(({ name }) => name === 'input');
    const selects = [...form.matchAll(/<select.*?<\/select>/gs)].map(([select]) => {
      const [own, ...options] = elementsOf(select);
      const chosen = options.find(({ attributes }) => 'selected' in attributes) ?? options[0];
      return [own?.attributes['name'], chosen?.attributes['value'] ?? ''];
    });
    const named = inputs.map(({ attributes: { name, value = '' } }) => [name, value]);
    return Object.fromEntries([...named, ...selects]);
  });
}

describe.each(databaseKinds)('on %s', (kind) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await openGateway(kind, rows);
  });
  afterAll(() => gateway.close());
  const get = (url: string, status?: number, headers?: object) =>
    pageOf(gateway, url, status, headers);

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
    const sent = { ...form, ...typed };
    const page = await get(`/outfits/?${new URLSearchParams(sent)}`);
    // It stays in the form.
    expect(fieldsOf(page)[0]).toEqual(sent);
    const ordering = 'ordering' in typed ? 'LIKE_COUNT_ASC' : null;
    const { data } = await gateway.post(
      `query ($filter: OutfitFilter, $ordering: OutfitOrdering) {
         outfits(filter: $filter, ordering: $ordering) { count results { databaseId } } }`,
      { filter, ordering },
    );
    const { outfits } = data as {
      outfits: { count: number; results: { databaseId: number }[] };
    };
    const { count, results } = outfits;
    expect(idsOn(page)).toEqual(results.map(({ databaseId }) => databaseId));
    expect(textsOf(page, 'p')).toContain(`${count} ${count === 1 ? 'outfit' : 'outfits'}`);
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
    for (const path of ['/outfits/', '/api/outfits/']) {
      const list = await get(path);
      const { results } = (await gateway.get('/api/outfits/')).json();
      expect(idsOn(list)).toEqual(results.map(({ id }: { id: number }) => id));
      for (const { user } of results) expect(hrefsOf(list)).toContain(`/users/${user.id}`);
    }
    const outfit = (await gateway.get(`/api/outfits/${template.id}/`)).json();
    const page = await get(`/outfits/${template.id}`);
    expect(textsOf(page, 'h1')).toEqual([outfit.title || `Outfit ${outfit.id}`]);
    expect(hrefsOf(page)).toEqual(
      expect.arrayContaining([outfit.image_key, `/users/${outfit.user.id}`, '/outfits/']),
    );
    const user = `/users/${outfit.user.id}`;
    const mine = rows.filter(({ userId }) => userId === template.userId).map(({ id }) => id);
    const found: number[] = [];
    for (let number = 1; number <= Math.ceil(mine.length / 20); number++) {
      found.push(...idsOn(await get(`${user}?ordering=id&page=${number}`)));
    }
    expect(found).toEqual(mine.toSorted((a, b) => a - b));
    expect(textsOf(await get(user), 'p')).toContain(`@${outfit.user.username}`);
  });

  test.each([
    ['/outfits/?search=the&page=9999', 404, /^Page 9999 does not exist: the last page is \d+\.$/],
    ['/outfits/?page=99999999999999999999', 404, /^Invalid page\.$/],
    ['/users/1?page=9999', 404, /^Page 9999 does not exist: the last page is \d+\.$/],
  ] as const)(
    'past the end, %s names the last page and leads to it',
    async (url, status, words) => {
      const page = await get(url, status);
      expect(textsOf(page, 'p')).toContainEqual(expect.stringMatching(words));
      const last = hrefsOf(page).find((href) => href.endsWith('page=last')) ?? '';
      const { pathname } = new URL(url, 'http://shop.test');
      const { count } = (await gateway.get(`${pathname}${last}`)).json();
      expect(idsOn(await get(`${pathname}${last}`)).length).toBeGreaterThan(0);
      if (pathname === '/outfits/') expect(count).toBeGreaterThan(20);
    },
  );

  test.each([
    ['search=ab', 'Give words of three characters or more'],
    [`search=${'x'.repeat(101)}`, 'at most 100 characters'],
    ['search=%00', 'Null characters are not allowed'],
    ['likes_from=many', 'A valid integer is required'],
    ['likes_from=-1', 'must be 0 or more'],
    ['created_from=2024-02-30', 'RFC 3339'],
    ['video=perhaps', 'Must be a valid boolean'],
    ['device=fridge', 'fridge is not one of the available choices'],
    ['hashtag=%20', 'is no hashtag'],
    ['ordering=nope', 'nope is not one of the available choices'],
    ['search=%22%3E%3Cscript%3E&page=x', 'Invalid page'],
  ])(
    '%s is an error that says what may be given, with the form filled in',
    async (query, words) => {
      const status = query.includes('page') ? 404 : 400;
      const page = await get(`/outfits/?${query}`, status);
      expect(textsOf(page, 'p').join('\n')).toContain(words);
      const [[name = '', value = ''] = []] = [...new URLSearchParams(query)];
      if (!['video', 'device', 'ordering'].includes(name)) {
        expect(fieldsOf(page)[0]?.[name]).toBe(value);
      }
    },
  );

  test.each([
    '/outfits/999999',
    '/outfits/x',
    '/outfits/99999999999',
    '/users/999999',
    '/users/-1',
  ])('%s is a 404 with a way back', async (url) => {
    expect(hrefsOf(await get(url, 404))).toContain('/outfits/');
    expect((await gateway.get(url)).json()).toEqual({ detail: 'Not found.' });
  });

  test('programs get the record as JSON, by GET, HEAD and OPTIONS alone', async () => {
    for (const url of ['/outfits/?search=the', '/outfits/1', '/users/1']) {
      const { headers, statusCode } = await gateway.get(url);
      expect([statusCode, headers['content-type'], headers['vary']]).toEqual([
        ...[200, 'application/json', 'Accept'],
      ]);
      for (const method of ['POST', 'DELETE', 'PUT'] as const) {
        const refused = await gateway.app.inject({ method, url, headers: { host: 'shop.test' } });
        expect(refused.statusCode).toBe(405);
      }
      const head = { host: 'shop.test', accept, 'x-request-id': 'the-same' };
      const [got, told] = await Promise.all(
        (['GET', 'HEAD'] as const).map((method) =>
          gateway.app.inject({ method, url, headers: head }),
        ),
      );
      expect(told?.body).toBe('');
      expect({ ...told?.headers, date: '' }).toEqual({ ...got?.headers, date: '' });
    }
    for (const [url, location] of [
      ['/outfits?page=2', '/outfits/?page=2'],
      ['/outfits/7/', '/outfits/7'],
      ['/users/7/?page=2', '/users/7?page=2'],
    ] as const) {
      const { headers, statusCode } = await gateway.get(url, { accept });
      expect([statusCode, headers['location']]).toEqual([301, location]);
    }
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
});

async function open(outfits: readonly OutfitRow[], environment: Record<string, string>) {
  const gateway = await openGateway('PostgreSQL', outfits, environment);
  onTestFinished(() => gateway.close());
  return gateway;
}

test('only the owner sees a private outfit, its number included, and that page is kept by no one', async () => {
  const words = 'Onlymine coat';
  const gateway = await open(
    [
      { ...template, id: 1, private: true, title: words },
      { ...template, id: 2, private: false, title: 'For all coat' },
    ],
    { PRIVATE_OUTFITS: 'owner', AUTH_JWT_SECRET: secret },
  );
  const owner = await signIn(template.userId);
  for (const url of ['/outfits/?search=coat', `/users/${template.userId}`]) {
    for (const headers of [{}, await signIn(77)]) {
      const page = await pageOf(gateway, url, 200, headers);
      expect(page).not.toContain('Onlymine');
      expect(textsOf(page, 'p')).toContain('1 outfit');
    }
    const page = await pageOf(gateway, url, 200, owner);
    expect(page).toContain('Onlymine');
    expect(textsOf(page, 'p')).toContain('2 outfits');
    // The length of a compressed page could be asked about its text.
    const { headers } = await gateway.get(url, { accept, 'accept-encoding': 'br', ...owner });
    expect(headers).not.toHaveProperty('content-encoding');
    expect(headers['vary']).toBe('Accept, Accept-Encoding');
  }
  const hidden = await pageOf(gateway, '/outfits/1', 404, await signIn(77));
  const missing = await pageOf(gateway, '/outfits/3', 404, await signIn(77));
  expect(hidden).toBe(missing);
  expect(await pageOf(gateway, '/outfits/1', 200, owner)).toContain(words);
  await pageOf(gateway, '/outfits/1', 401, { authorization: 'Bearer x.y.z' });
});

test('the rate limit holds for pages too', async () => {
  const gateway = await open(rows.slice(0, 3), { RATE_LIMIT: '1/day' });
  await pageOf(gateway, '/outfits/');
  await pageOf(gateway, '/outfits/', 429);
});

test.each([
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "coat' onfocus='alert(1)",
  '\u202eoverridden\u2066',
  '</title></style><b>',
  '{{7*7}} &lt;b&gt;',
])('%s is text, where it is searched for', async (words) => {
  const gateway = await open(rows.slice(0, 3), {});
  const page = await pageOf(gateway, `/outfits/?search=${encodeURIComponent(words)}`);
  const names = elementsOf(page).map(({ name }) => name);
  for (const name of ['script', 'img', 'b']) expect(names).not.toContain(name);
  expect(elementsOf(page).flatMap(({ attributes }) => Object.keys(attributes))).not.toContain(
    'onfocus',
  );
  const shown = words.replace(/[\u202e\u2066]/g, '');
  for (const name of ['title', 'h1'])
    expect(textsOf(page, name)).toEqual([`Outfits with “${shown}”`]);
  expect(fieldsOf(page)[0]?.['search']).toBe(words);
});

test('BROWSABLE=off: there is none of them; and the old service gets none of their paths', async () => {
  const gateway = await open(rows.slice(0, 3), { BROWSABLE: 'off' });
  for (const url of ['/outfits/', '/outfits/1', '/users/1']) {
    expect((await gateway.get(url, { accept })).statusCode).toBe(404);
  }
  for (const path of ['/outfits/', '/users/', '/users/login/']) {
    expect(() => readConfig({ LEGACY_PATHS: `/api/,${path}` })).toThrow(ConfigError);
  }
});
