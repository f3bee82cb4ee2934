// BROWSABLE: pages for people at the front door, and the same bytes as ever for everyone else.
import { createHash } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { LightMyRequestResponse } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { openBeside, openForTest, useGateway } from '../support/gateway.ts';
import { accept, elementsOf, hrefsOf, textsOf } from '../support/http/html.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { makeRecords, startLegacyService } from '../support/legacy/legacy-service.ts';

const html = 'text/html; charset=utf-8';
const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const [template] = rows as [OutfitRow];
const gateway = useGateway('PostgreSQL', rows);
const without = useGateway('PostgreSQL', rows, { BROWSABLE: 'off' });

const open = (environment: Record<string, string>) => openBeside(gateway, environment);

/** Headers that do not differ from one request to the next. */
function headersOf({ headers }: LightMyRequestResponse) {
  const { 'x-request-id': _id, date: _date, ...others } = headers;
  return others;
}

/** A page, which is one whatever is in it. */
function expectPage(response: LightMyRequestResponse, status = 200): string {
  expect(response.statusCode).toBe(status);
  expect(response.headers).toMatchObject({
    'content-type': html,
    vary: expect.stringMatching(/^Accept\b/),
    'cache-control': 'private, no-cache',
  });
  if (status === 200) expect(response.headers['etag']).toMatch(/^"[\w-]+"$/);
  else expect(response.headers).not.toHaveProperty('etag');
  expect(elementsOf(response.body).map(({ name }) => name)).toContain('main');
  return response.body;
}

const pageOf = async (url: string, on = gateway, headers = {}, status = 200) =>
  expectPage(await on.get(url, { accept, ...headers }), status);

/** The JSON that a page shows. */
const jsonOn = (page: string) =>
  JSON.parse(textsOf(page, 'pre').find((text) => text.startsWith('{')) ?? '');

test.each([
  undefined,
  '',
  '*/*',
  'application/json',
  'application/json, text/plain, */*',
  'text/html, */*',
  'text/html;q=0.5, application/json;q=0.6, */*;q=0.1',
  'text/html;q=0.5, application/*;q=0.6, */*;q=0.1',
  'text/html;q=0, text/*, application/json;q=0.1',
  'text/*, application/json;q=0.1',
  'text/html;q=0.9, application/json',
  'text/html;q=0, */*;q=0.1',
  'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2',
  'text/html, image/gif, image/jpeg, */*; q=0.2',
  'application/xml',
])('a request with Accept: %s gets exactly the bytes that it gets without pages', async (value) => {
  const requests = [
    ...['/api/outfits/?page=2', '/api/outfits/?page=99', '/api/outfits/?ordering=nope'],
    ...['/api/outfits', '/api/nope', '/nope', '/graphql?query={__typename}', '/health/ready'],
  ].map((url) => ({ method: 'GET' as 'GET' | 'HEAD', url }));
  for (const method of ['HEAD', 'POST', 'OPTIONS', 'DELETE'] as 'HEAD'[]) {
    requests.push({ method, url: '/api/outfits/' });
  }
  const headers = value === undefined ? {} : { accept: value };
  for (const request of requests) {
    const [answer, expected] = await Promise.all(
      [gateway, without].map(async ({ app }) => {
        const response = await app.inject({ ...request, headers });
        const { statusCode, rawPayload } = response;
        return { ...request, statusCode, rawPayload, headers: headersOf(response) };
      }),
    );
    expect(answer).toEqual(expected);
  }
});

test.each([
  accept,
  'text/html',
  'text/html, */*;q=0.1',
  // What the own range of JSON says goes before what others say.
  'text/html, application/json;q=0.9, */*',
  'text/html;q=0.1, application/json;q=0, */*',
  'text/html;q=0.5, application/*;q=0.4, */*;q=0.6',
])(
  'a client that prefers HTML by %s gets a page with the records of the listing',
  async (value) => {
    const json = await pageOf('/api/outfits/?page=2', gateway, { accept: value });
    const page = await pageOf('/outfits/?page=2', gateway, { accept: value });
    const { results } = (await gateway.get('/api/outfits/?page=2')).json();
    expect(jsonOn(json).results).toEqual(results);
    const titles = textsOf(page, 'h2');
    expect(titles).toEqual(
      results.map(({ title }: { title: string }) => title || 'Without a title'),
    );
    const pictures = elementsOf(page).map(
      ({ name, attributes }) => name === 'img' && attributes['src'],
    );
    for (const { image_key, user } of results) {
      expect(pictures).toContain(image_key);
      if (user.avatar_key)
        expect(pictures).toContain(`https://media.example.com/${user.avatar_key}`);
      expect(page).toContain(`@<bdi dir="auto">${user.username}</bdi>`);
    }
    const count = (mark: string) => page.split(`</svg> ${mark}<`).length - 1;
    expect(count('Private')).toBe(
      results.filter((one: { private: boolean }) => one.private).length,
    );
    expect(count('Video')).toBe(results.filter((one: { video: unknown }) => one.video).length);
  },
);

test('the page of a REST list leads to the pages beside it, to GraphiQL and to the pictures', async () => {
  const url = '/api/outfits/?a=%C3%A9&ordering=-like_count&page=2';
  const { next, previous } = (await gateway.get(url)).json();
  const hrefs = hrefsOf(await pageOf(url));
  const pictures = '/outfits/?a=%C3%A9&ordering=-like_count&page=2';
  expect(hrefs).toEqual(expect.arrayContaining([next, previous, pictures]));
  const end = await pageOf('/api/outfits/?page=last');
  expect(hrefsOf(end)).toContain('http://shop.test/api/outfits/?page=2');
  expect(hrefsOf(end).join()).not.toContain('page=4');
  expect(hrefsOf(await pageOf('/api/outfits/7/'))).toContain('/outfits/7');
});

test('the form offers every order of the listing', async () => {
  const [select = ''] = /<select id="ordering".*?<\/select>/s.exec(await pageOf('/outfits/')) ?? [];
  const [, ...options] = elementsOf(select).map(({ attributes }) => attributes);
  const error = (await gateway.get('/api/outfits/?ordering=nope')).json().ordering[0];
  const [, choices = ''] = /choices: (.*)\.$/.exec(error) ?? [];
  expect(options.map(({ value }) => value).sort()).toEqual(choices.split(', ').sort());
});

test.each(['/api/outfits/?', '/api/outfits/?page=last', '/outfits/7'])(
  'the link to GraphiQL at %s gives the same records',
  async (url) => {
    const link = hrefsOf(await pageOf(url)).find((href) => href.startsWith('/graphql?')) ?? '';
    const { page, record, beside } = (await gateway.get(link)).json().data;
    const { count, results, next, previous, ...json } = (await gateway.get(url)).json();
    const {
      next: _next,
      previous: _previous,
      ...own
    } = page ?? { ...record, ...(beside && { beside }) };
    expect(own).toEqual({ ...json, ...(results && { count, results }) });
  },
);

test.each([
  [404, 'GET', '/api/outfits/?page=99', 'Invalid page.'],
  [400, 'GET', '/api/outfits/?ordering=%3Cb%3E', '<b> is not one of the available choices'],
  [404, 'GET', '/api/nope', 'Not found.'],
  [405, 'DELETE', '/api/outfits/', 'Method "DELETE" not allowed.'],
  [401, 'POST', '/api/outfits/', 'Authentication credentials were not provided.'],
] as const)(
  'returns %s as a page with the JSON of the error: %s %s',
  async (status, method, url, words) => {
    const ask = (headers: object) =>
      gateway.app.inject({ method, url, headers: { host: 'shop.test', ...headers } });
    const [response, json] = [await ask({ accept }), await ask({})];
    const page = expectPage(response, status);
    expect(textsOf(page, 'h1')[0]).toMatch(String(status));
    expect(JSON.stringify(jsonOn(page))).toContain(JSON.stringify(words).slice(1, -1));
    // Once.
    expect(textsOf(page, 'p').join('\n')).not.toContain(words);
    expect(json.statusCode).toBe(status);
    for (const name of ['allow', 'www-authenticate'] as const) {
      if (json.headers[name]) expect(response.headers[name]).toBe(json.headers[name]);
    }
    expect(JSON.stringify(jsonOn(page))).toBe(json.body);
  },
);

test.each([
  [404, 'GET', '/nope?a=%3Cb%3E', 'There is no such page'],
  [404, 'POST', '/graphql/nope', 'There is no such page'],
  [404, 'GET', '/outfits/999999', 'There is no such outfit'],
  [404, 'GET', '/outfits/?page=0', 'There is no page 0'],
  [404, 'GET', '/outfits/?page=99', 'There is no page 99'],
  [405, 'POST', '/', '405 Method Not Allowed'],
] as const)(
  'returns %s outside of /api/ as a page that says it once: %s %s',
  async (status, method, url, words) => {
    const response = await gateway.app.inject({
      method,
      url,
      headers: { host: 'shop.test', accept },
    });
    const page = expectPage(response, status);
    expect(textsOf(page, 'h1')).toEqual([words]);
    expect(textsOf(page, 'main')[0]?.split(words)).toHaveLength(2);
    expect(page).not.toContain('x-request-id');
  },
);

test('a REST page shows the headers and the JSON of the answer', async () => {
  const url = '/api/outfits/?page=2';
  const { headers, body } = await gateway.get(url);
  const page = await pageOf(url);
  expect(textsOf(page, 'code')[0]).toBe(`GET ${url}`);
  // The id of a request is its own: with it, no two pages would be the same.
  const { date: _date, connection: _connection, 'x-request-id': _id, ...others } = headers;
  const lines = Object.entries(others).map(([name, value]) => `${name}: ${value}\n`);
  expect(textsOf(page, 'pre')[0]).toBe(lines.join(''));
  expect(JSON.stringify(jsonOn(page))).toBe(body);
});

test('a page that a browser has is a 304, until anything on it is another', async () => {
  const tagOf = async (url: string, headers = {}) =>
    String((await gateway.get(url, { accept, ...headers })).headers['etag']);
  for (const url of ['/', '/api/outfits/']) {
    const tag = await tagOf(url);
    for (const method of ['GET', 'HEAD'] as const) {
      const headers = { host: 'shop.test', accept, 'if-none-match': tag };
      const again = await gateway.app.inject({ method, url, headers });
      expect([again.statusCode, again.body]).toEqual([304, '']);
      const vary = expect.stringMatching(/^Accept\b/);
      const kept = { etag: tag, 'cache-control': 'private, no-cache', vary };
      expect(again.headers).toMatchObject(kept);
      expect(again.headers).not.toHaveProperty('content-type');
    }
    // Neither is the other: the JSON, and the page of it.
    const { etag } = (await gateway.get(url)).headers;
    await pageOf(url, gateway, { 'if-none-match': String(etag) });
    expect((await gateway.get(url, { 'if-none-match': tag })).statusCode).toBe(200);
    // Addresses that it shows are those of this host.
    if (url !== '/') expect(await tagOf(url, { host: 'other.test' })).not.toBe(tag);
  }
  const list = await tagOf('/api/outfits/');
  expect(await tagOf('/api/outfits/?a=1')).not.toBe(list);
  await gateway.database.pool.query(
    'UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = (SELECT max(id) FROM outfits)',
  );
  const { results } = (await gateway.get('/api/outfits/')).json();
  const page = await pageOf('/api/outfits/', gateway, { 'if-none-match': list });
  expect(jsonOn(page).results).toEqual(results);
  for (const url of ['/nope', '/api/nope', '/api/outfits/?page=99']) {
    await pageOf(url, gateway, { 'if-none-match': '*' }, 404);
  }
});

test('the first page says what the service is, and leads to its parts and newest outfits', async () => {
  const page = await pageOf('/');
  expect(textsOf(page, 'p').join('\n')).toContain('Outfits that people have published');
  expect(textsOf(page, 'a')).toContain('Look at 45 outfits');
  const menu = ['/outfits/', '/api/outfits/', '/graphql', '/api/docs'];
  expect(hrefsOf(page)).toEqual(expect.arrayContaining(menu));
  const inside = hrefsOf(page).filter((href) => href.startsWith('/'));
  for (const url of inside) {
    expect([url, (await gateway.get(url, { accept })).statusCode]).toEqual([url, 200]);
  }
  const { headers, body } = await gateway.get('/');
  const allow = 'GET, HEAD, OPTIONS';
  expect(headers).toMatchObject({ 'content-type': 'application/json', vary: 'Accept', allow });
  expect(JSON.parse(body)).toMatchObject({ count: 45, results: expect.any(Array) });
  expect((await gateway.get('/', { host: 'a b' })).statusCode).toBe(400);
});

test('/api/docs shows each path of the OpenAPI document, with each status as a line', async () => {
  const page = await pageOf('/api/docs');
  const { info, paths } = (await gateway.get('/api/openapi.json')).json();
  expect((await gateway.get('/api/docs')).json()).toMatchObject({ paths });
  for (const [path, methods] of Object.entries<object>(paths)) {
    for (const method of Object.keys(methods)) {
      const [panel = ''] = page
        .split('<section')
        .filter((part) => part.includes(`aria-label="${method.toUpperCase()} ${path}"`));
      const fields = ['title', 'image_key', ...(path.includes('{') ? ['id'] : [])];
      for (const field of fields) expect(textsOf(panel, 'code')).toContain(field);
    }
  }
  const statuses = [...info.description.matchAll(/^\| (\d+) \|/gm)].map(([, status]) => status);
  const names = textsOf(page.split('aria-label="Errors"')[1] ?? '', 'dt').map((text) =>
    text.trim(),
  );
  expect(names).toEqual(statuses);
  expect(names).toContain('429');
  const redirect = await gateway.get('/api/docs/', { accept });
  expect([redirect.statusCode, redirect.headers['location']]).toEqual([301, '/api/docs']);
  const pages = await pageOf('/api/outfits/?ordering=id&page=2');
  expect(jsonOn(pages).results[0].id).toBe(21);
});

test('a page may load pictures and its own style, and nothing else', async () => {
  const other = await open({ MEDIA_URL: 'https://pictures.test/a' });
  for (const url of ['/', '/api/outfits/', '/api/nope']) {
    const { headers, body } = await other.get(url, { accept });
    const [style = ''] = /(?<=<style>).*?(?=<\/style>)/s.exec(body) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; img-src 'self' data: https://pictures.test; media-src https://video.example.com; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    );
    const loading = elementsOf(body).filter(
      ({ name, attributes }) =>
        ['script', 'iframe', 'object'].includes(name) || 'style' in attributes,
    );
    expect(loading).toEqual([]);
  }
});

const nasty = [
  '<script>alert(1)</script>',
  '</script></style></title></pre><img src=x onerror=alert(1)>',
  '"><svg onload=alert(1)>',
  "' onmouseover='alert(1)",
  '<!-- ',
  ']]>',
  '&lt;b&gt;&amp;',
  '{{7*7}}',
  'javascript:alert(1)',
  'data:text/html,<script>alert(1)</script>',
  'https://example.com/"onclick="alert(1)',
  '\u202Eright to left\u202C',
  '\u2067isolate',
  '\u2069\u202Eescaped',
  '\u2028\u2029',
  'مرحبا بالعالم',
  'שלום',
  '👩‍👩‍👧‍👦🏳️‍🌈',
  'Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢',
  '\u0001\u0007\u001B[31m\u007F\u0085',
  'x'.repeat(10_000),
  'long '.repeat(2_000),
  '',
  ' ',
  '\r\n\t',
];
const parts = fc.constantFrom(...nasty.filter(({ length }) => length < 100));
const anything = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.array(parts, { maxLength: 4 }).map((texts) => texts.join('')),
);
const names = ['title', 'description', 'imageKey', 'videoKey', 'backgroundColor'] as const;
const userNames = ['username', 'firstName', 'lastName', 'avatarKey'] as const;

/** An outfit with the same text wherever there can be one; a user of its own, as names are unique. */
const outfitWith = (text: string, index: number): OutfitRow => ({
  ...template,
  id: index + 1,
  userId: index + 1,
  ...Object.fromEntries(names.map((name) => [name, text])),
  imageOriginalKey: text,
  user: {
    ...template.user,
    id: index + 1,
    ...Object.fromEntries(userNames.map((name) => [name, text])),
    username: `${index}:${text}`,
  },
});

const tags =
  /^(?:a|article|bdi|body|button|code|details|div|footer|form|h1|h2|head|header|html|img|input|label|li|link|main|meta|nav|option|p|path|pre|rect|search|section|select|span|strong|style|summary|svg|time|title|ul)$/;
const attributes =
  /^(?:alt|aria-current|aria-hidden|aria-label|aria-labelledby|charset|class|color-scheme|content|d|datetime|decoding|dir|fetchpriority|fill|focusable|for|height|href|id|lang|loading|max|maxlength|method|min|name|open|property|rel|selected|src|title|type|value|viewBox|width)$/;

test('text of people is text on the page, whatever it says', async () => {
  const random = fc
    .sample(anything, 75)
    .map((text) => Buffer.from(text.replaceAll('\0', '')).toString());
  const outfits = [...nasty, ...random].map(outfitWith);
  const other = await openForTest('PostgreSQL', outfits, { PAGE_SIZE: '1000' });
  const { results } = (await other.get('/api/outfits/?ordering=id')).json();
  const page = await pageOf('/outfits/?ordering=id', other);
  const json = await pageOf('/api/outfits/?ordering=id', other);
  const home = await pageOf('/', other);
  const strange = [page, json, home]
    .flatMap(elementsOf)
    .filter(
      ({ name, attributes: { href = '/', src = 'https://media.example.com/', ...others } }) =>
        !tags.test(name) ||
        !Object.keys(others).every((other) => attributes.test(other)) ||
        !/^https:\/\/media\.example\.com\//.test(src) ||
        !/^(https?:\/\/|[/?#]|data:image\/svg\+xml,)/.test(href),
    );
  expect(strange).toEqual([]);
  // Nothing on the page can turn the direction of what is beside it, and no control is in it.
  expect(/[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/u.exec(page + json + home)).toBeNull();
  // Each title is there as a text of its own, in the right place.
  const titles = textsOf(page, 'h2').slice(0, results.length);
  const visible = (text: string) => {
    const shown = text.replace(/[^\P{Cc}\t\n]|[\u2028-\u202e\u2066-\u2069\u2400-\u2421]/gu, '');
    return shown === 'Without a title' || !/[^\s\p{Cf}]/u.test(shown) ? '' : shown;
  };
  const given = results.map(({ title }: { title: string }) => visible(title));
  expect(titles.map(visible)).toEqual(given);
  expect(titles.map((title) => title.trim())).not.toContain('');
  expect(jsonOn(json).results).toEqual(results);
});

test('only the owner sees a private outfit, and that page is kept by no one', async () => {
  const mine = { ...template, id: 1, private: true, title: 'Onlymine coat' };
  const settings = { PRIVATE_OUTFITS: 'owner', AUTH_JWT_SECRET: secret };
  const forAll = { ...template, id: 2, private: false, title: 'For all coat' };
  const other = await openForTest('PostgreSQL', [mine, forAll], settings);
  const owner = await signIn(template.userId);
  for (const url of ['/outfits/', '/outfits/?search=coat', `/outfits/?user=${template.userId}`]) {
    // The second time, from memory.
    for (const headers of [owner, {}, await signIn(77), owner]) {
      const page = await pageOf(url, other, headers);
      expect(page.includes('Onlymine')).toBe(headers === owner);
      expect(textsOf(page, 'p')).toContain(headers === owner ? '2 outfits' : '1 outfit');
      expect(page).toContain('For all');
    }
    // The length of a compressed page could be asked about its text.
    const { headers } = await other.get(url, { accept, 'accept-encoding': 'br', ...owner });
    expect(headers).not.toHaveProperty('content-encoding');
    expect(headers['vary']).toMatch(/^Accept, (?:Authorization, )?Accept-Encoding$/);
  }
  const statusFor = async (headers: object) =>
    (await other.get('/outfits/1', { accept, ...headers })).statusCode;
  expect(await Promise.all([owner, {}].map(statusFor))).toEqual([200, 404]);
  for (const headers of [{}, owner]) {
    const home = await pageOf('/', other, headers);
    expect(home.includes('Onlymine')).toBe(headers === owner);
  }
  const stranger = await signIn(77);
  const hidden = await pageOf('/outfits/1', other, stranger, 404);
  const missing = await pageOf('/outfits/3', other, stranger, 404);
  expect(hidden).toBe(missing);
  expect(await pageOf('/outfits/1', other, owner)).toContain(mine.title);
  for (const url of ['/api/outfits/', '/outfits/1']) {
    // No token is ever repeated.
    const page = await pageOf(url, other, { authorization: 'Bearer x.y.z' }, 401);
    expect(page).not.toContain('x.y.z');
  }
});

test.each([
  [{}, 'sign-in is not configured'],
  [{ AUTH_JWT_SECRET: secret }, 'Writing needs a bearer token'],
  [{ AUTH_JWT_SECRET: secret, WRITES: 'off' }, 'Writing is switched off for now'],
  [
    { AUTH_JWT_SECRET: secret, LEGACY_MODE: 'canary:100', LEGACY_URL: 'http://127.0.0.1:9' },
    'The old service still takes all writes',
  ],
])('with %j, the pages say: %s', async (environment, sentence) => {
  const other = await open(environment);
  for (const url of ['/', '/api/outfits/']) {
    const page = await pageOf(url, other, { 'x-forwarded-for': '10.0.0.1' });
    expect(textsOf(page, 'p').join('\n')).toContain(sentence);
  }
});

test('with GRAPHIQL=off, no page leads to it', async () => {
  const hrefs = hrefsOf(await pageOf('/api/outfits/', await open({ GRAPHIQL: 'off' })));
  expect(hrefs.filter((href) => href.includes('graphql'))).toEqual([]);
  expect(hrefs).toContain('/api/docs');
});

test('behind PUBLIC_URL every link begins with it', async () => {
  const other = await open({ PUBLIC_URL: 'https://example.com/shop' });
  for (const url of ['/', '/api/outfits/']) {
    const hrefs = hrefsOf(await pageOf(url, other));
    expect(hrefs.filter((href) => href.startsWith('/'))).toEqual([]);
    expect(hrefs).toContain('https://example.com/shop/api/outfits/');
  }
  const { headers } = await other.get('/outfits/?search=&device=web', { accept });
  expect(headers['location']).toBe('https://example.com/shop/outfits/?device=web');
});

test('a page is sent in the coding that the browser takes, and HEAD has its headers', async () => {
  const off = await open({ COMPRESSION: 'off' });
  const vary = 'Accept, Accept-Encoding';
  for (const url of ['/', '/api/outfits/', '/outfits/', '/outfits/1', '/api/docs', '/nope']) {
    const get = async (headers: object, on = gateway) =>
      on.get(url, { accept, 'x-request-id': 'the-same', ...headers });
    const plain = await get({});
    const head = await gateway.app.inject({
      ...{ method: 'HEAD', url },
      headers: { host: 'shop.test', accept, 'x-request-id': 'the-same' },
    });
    expect([head.body, headersOf(head)]).toEqual(['', headersOf(plain)]);
    expect(plain.headers).toMatchObject({ vary });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    for (const [encoding, read] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      const accepted = { 'accept-encoding': encoding };
      // The first time, and from memory.
      for (const { headers, rawPayload } of [await get(accepted), await get(accepted)]) {
        const length = String(rawPayload.length);
        expect(headers).toMatchObject({
          vary,
          'content-encoding': encoding,
          'content-length': length,
        });
        expect(read(rawPayload).equals(plain.rawPayload)).toBe(true);
      }
      const without = await get(accepted, off);
      expect(without.headers).toMatchObject({ vary: 'Accept' });
      expect(headersOf(without)).toEqual(headersOf(await get({}, off)));
      if (url === '/nope') continue;
      const tag = String((await get(accepted)).headers['etag']);
      expect(tag).not.toBe(plain.headers['etag']);
      const known = await get({ ...accepted, 'if-none-match': tag });
      expect([known.statusCode, known.headers['vary'], known.body]).toEqual([304, vary, '']);
      expect(known.headers).not.toHaveProperty('content-encoding');
    }
  }
});

test('while the database is away, pages say so with 503', async () => {
  const other = await openForTest('PostgreSQL', rows);
  await other.database.pool.query('ALTER TABLE outfits RENAME TO gone');
  for (const url of ['/', '/outfits/', '/api/outfits/']) await pageOf(url, other, {}, 503);
});

test('what the old service answers a browser passes as it is', async () => {
  const legacy = await startLegacyService(makeRecords(3));
  onTestFinished(() => legacy.close());
  const other = await open({ LEGACY_MODE: 'shadow', LEGACY_URL: legacy.base });
  const base = await other.app.listen({ port: 0, host: '127.0.0.1' });
  const ask = (url: string) => fetch(url, { headers: { accept } });
  for (const path of ['/api/outfits/', '/api/nope/']) {
    const [passed, direct] = [await ask(`${base}${path}`), await ask(`${legacy.base}${path}`)];
    expect(await passed.text()).toBe(await direct.text());
    expect(passed.headers.get('content-type')).toBe('application/json');
    expect(passed.headers.get('vary')).toBe(direct.headers.get('vary'));
  }
  // The first page is this gateway's own.
  expect((await ask(base)).headers.get('content-type')).toBe(html);
});

test('BROWSABLE=off serves no pages: their paths are unknown', async () => {
  const page = await without.get('/api/outfits/', { accept });
  expect(page.headers['content-type']).toBe('application/json');
  expect(page.body).toBe((await without.get('/api/outfits/')).body);
  expect((await without.get('/api/outfits/', { accept: 'text/html' })).statusCode).toBe(406);
  for (const url of ['/', '/outfits/', '/outfits/1', '/users/1']) {
    for (const value of [accept, 'application/json']) {
      const { statusCode, body } = await without.get(url, { accept: value });
      expect([statusCode, body]).toEqual([404, '{"detail":"Not found."}']);
    }
  }
});
