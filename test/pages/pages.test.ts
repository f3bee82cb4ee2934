// BROWSABLE: pages for people at the front door, and the same bytes as ever for everyone else.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import fc from 'fast-check';
import type { LightMyRequestResponse } from 'fastify';
import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { routes as ownRoutes, type Route } from '../../src/rest/routes.ts';
import { databaseKinds, openGateway, type TestGateway } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { elementsOf, textsOf } from '../support/http/html.ts';
import { secret, signIn } from '../support/http/tokens.ts';

/** What Chrome sends. */
const accept =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8';
const html = 'text/html; charset=utf-8';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const [template] = rows as [OutfitRow];

const codings = [
  ['br', brotliDecompressSync],
  ['gzip', gunzipSync],
] as const;

/** Headers that do not differ from one request to the next. */
function headersOf({ headers }: LightMyRequestResponse) {
  const { 'x-request-id': _id, date: _date, ...others } = headers;
  return others;
}

/** A page, which is one whatever is in it. */
function expectPage(response: LightMyRequestResponse, status = 200): string {
  expect(response.statusCode).toBe(status);
  expect(response.headers['content-type']).toBe(html);
  expect(response.headers['vary']).toMatch(/^Accept\b/);
  expect(response.headers['cache-control']).toBe('private, no-cache');
  if (status === 200) expect(response.headers['etag']).toMatch(/^"[\w-]+"$/);
  else expect(response.headers).not.toHaveProperty('etag');
  expect(elementsOf(response.body).map(({ name }) => name)).toContain('main');
  return response.body;
}

function hrefsOf(page: string): string[] {
  return elementsOf(page).flatMap(({ attributes: { href } }) => (href === undefined ? [] : [href]));
}

async function open(
  outfits: readonly OutfitRow[] = rows,
  environment: Record<string, string> = {},
  options: Parameters<typeof openGateway>[3] = {},
): Promise<TestGateway> {
  const gateway = await openGateway('PostgreSQL', outfits, environment, options);
  onTestFinished(() => gateway.close());
  return gateway;
}

describe.each(databaseKinds)('on %s', (kind) => {
  let gateway: TestGateway;
  let without: Awaited<ReturnType<typeof buildApp>>;
  beforeAll(async () => {
    gateway = await openGateway(kind, rows);
    without = await buildApp({ ...gateway.config, browsable: false }, gateway.database);
  });
  afterAll(async () => {
    await without.close();
    await gateway.close();
  });

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
  ])(
    'a request with Accept: %s gets exactly the bytes that it gets without pages',
    async (value) => {
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE'] as const) {
        for (const url of [
          '/api/outfits/?page=2',
          '/api/outfits/?page=99',
          '/api/outfits/?ordering=nope',
          '/api/outfits',
          '/api/nope',
          '/nope',
          '/graphql?query={__typename}',
          '/health/ready',
        ]) {
          const headers = { host: 'shop.test', ...(value === undefined ? {} : { accept: value }) };
          const [response, expected] = await Promise.all(
            [gateway.app, without].map((app) => app.inject({ method, url, headers })),
          );
          if (!response || !expected) throw new Error('There is no answer.');
          expect(response.statusCode).toBe(expected.statusCode);
          expect(response.rawPayload.equals(expected.rawPayload)).toBe(true);
          expect(headersOf(response)).toEqual(headersOf(expected));
        }
      }
    },
  );

  test('a client that prefers HTML gets the listing as a page, also if it does not accept JSON', async () => {
    for (const value of [
      accept,
      'text/html',
      'text/html, */*;q=0.1',
      // What the own range of JSON says goes before what others say.
      'text/html, application/json;q=0.9, */*',
      'text/html;q=0.1, application/json;q=0, */*',
      'text/html;q=0.5, application/*;q=0.4, */*;q=0.6',
    ]) {
      const page = expectPage(await gateway.get('/api/outfits/?page=2', { accept: value }));
      const { results } = (await gateway.get('/api/outfits/?page=2')).json();
      const titles = textsOf(page, 'h2').slice(0, results.length);
      expect(titles).toEqual(
        results.map(({ title }: { title: string }) => title || 'Without a title'),
      );
      const images = elementsOf(page).filter(({ name }) => name === 'img');
      const pictures = images.map(({ attributes }) => attributes['src']);
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
    }
  });

  test('the pages of the list lead to each other by the links of the answer', async () => {
    const url = '/api/outfits/?a=%C3%A9&ordering=-like_count&page=2';
    const { next, previous } = (await gateway.get(url)).json();
    const hrefs = hrefsOf(expectPage(await gateway.get(url, { accept })));
    expect(hrefs).toContain(next);
    expect(hrefs).toContain(previous);
    const [first, last] = ['1', 'last'].map(
      (page) => `?a=%C3%A9&ordering=-like_count&page=${page}`,
    );
    expect(hrefs).toEqual(expect.arrayContaining([first, last]));

    const end = expectPage(await gateway.get(`/api/outfits/${last}`, { accept }));
    expect(textsOf(end, 'nav').join()).toContain('Page 3 of 3');
    expect(hrefsOf(end)).not.toContain(last);
    const begin = expectPage(await gateway.get('/api/outfits/', { accept }));
    expect(textsOf(begin, 'nav').join()).toContain('Page 1 of 3');
    expect(hrefsOf(begin)).toContain('http://shop.test/api/outfits/?page=2');
  });

  test('the menu has every order of the schema, and keeps what else was asked for', async () => {
    const menuOf = async (url: string) => {
      const elements = elementsOf(expectPage(await gateway.get(url, { accept })));
      const named = (name: string) =>
        elements.filter((one) => one.name === name).map(({ attributes }) => attributes);
      return { options: named('option'), inputs: named('input') };
    };
    const { options } = await menuOf('/api/outfits/');
    const error = (await gateway.get('/api/outfits/?ordering=nope')).json().ordering[0];
    expect(error).toContain(`choices: ${options.map(({ value }) => value).join(', ')}.`);
    expect(options.filter((option) => 'selected' in option)).toEqual([
      { value: '-created', selected: '' },
    ]);
    const menu = await menuOf('/api/outfits/?a=1&page=2&ordering=id&a=%22%3E');
    expect(menu.options.find((option) => 'selected' in option)?.['value']).toBe('id');
    expect(menu.inputs.map(({ name, value }) => [name, value])).toEqual([
      ['a', '1'],
      ['a', '">'],
    ]);
  });

  test('the same question in GraphQL gives the same records', async () => {
    for (const url of ['?', '?ordering=-like_count&page=2', '?page=last&ordering=']) {
      const page = expectPage(await gateway.get(`/api/outfits/${url}`, { accept }));
      const link = hrefsOf(page).find((href) => href.startsWith('/graphql?')) ?? '';
      const asked = new URLSearchParams(link.slice('/graphql?'.length));
      expect(asked.get('operationName')).toBe('ListOutfits');
      const variables = JSON.parse(asked.get('variables') ?? '');
      const { data } = await gateway.post(asked.get('query') ?? '', variables);
      const { count, results } = (await gateway.get(`/api/outfits/${url}`)).json();
      expect(data).toMatchObject({ page: { count, results } });
      // The link itself, to a program.
      expect((await gateway.get(link)).json()).toEqual({ data });

      const [curl = ''] = textsOf(page, 'pre').filter((text) => text.startsWith('curl'));
      const words = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }; ${curl}`]);
      const [address, , type, , body] = words.toString().split('\0');
      expect(address).toBe('http://shop.test/graphql');
      expect(type).toBe('Content-Type: application/json');
      expect(JSON.parse(body ?? '')).toEqual({
        query: asked.get('query'),
        variables,
        operationName: 'ListOutfits',
      });
    }
  });

  test.each([
    [404, 'GET', '/api/outfits/?page=99', 'Invalid page.'],
    [400, 'GET', '/api/outfits/?ordering=%3Cb%3E', '<b> is not one of the available choices'],
    [404, 'GET', '/api/nope', 'Not found.'],
    [404, 'GET', '/nope?a=%3Cb%3E', 'Not found.'],
    [404, 'POST', '/graphql/nope', 'Not found.'],
    [405, 'DELETE', '/api/outfits/', 'Method "DELETE" not allowed.'],
    [401, 'POST', '/api/outfits/', 'Authentication credentials were not provided.'],
    [405, 'POST', '/', 'Method "POST" not allowed.'],
  ] as const)(
    '%s is a page with the words of the error: %s %s',
    async (status, method, url, words) => {
      const headers = { host: 'shop.test', accept };
      const response = await gateway.app.inject({ method, url, headers });
      const page = expectPage(response, status);
      expect(textsOf(page, 'h1')[0]).toMatch(String(status));
      expect(textsOf(page, 'p').join('\n')).toContain(words);
      const json = await gateway.app.inject({ method, url, headers: { host: 'shop.test' } });
      expect(json.statusCode).toBe(status);
      for (const name of ['allow', 'www-authenticate'] as const) {
        if (json.headers[name]) expect(response.headers[name]).toBe(json.headers[name]);
      }
      // The whole JSON stands below, as it is.
      const shown = textsOf(page, 'pre').find((text) => text.startsWith('{')) ?? '';
      expect(JSON.stringify(JSON.parse(shown))).toBe(json.body);
    },
  );

  test('an answer is shown whole: its status, its headers, and its JSON', async () => {
    const headers = { 'x-request-id': 'the-same' };
    const answer = await gateway.get('/api/outfits/?page=2', headers);
    const page = expectPage(await gateway.get('/api/outfits/?page=2', { ...headers, accept }));
    const [shown = '', json = ''] = textsOf(page, 'pre');
    // The id of a request is its own: with it, no two pages would be the same.
    const { date: _date, connection: _connection, 'x-request-id': id, ...others } = answer.headers;
    expect(id).toBe('the-same');
    expect(shown.split('\n')).toEqual([
      'GET /api/outfits/?page=2',
      '',
      'HTTP 200 OK',
      ...Object.entries(others).map(([name, value]) => `${name}: ${value}`),
    ]);
    expect(JSON.stringify(JSON.parse(json))).toBe(answer.body);
  });

  test('HEAD has the headers of the page', async () => {
    for (const url of ['/', '/api/outfits/', '/api/nope', '/nope']) {
      const headers = { host: 'shop.test', accept, 'x-request-id': 'the-same' };
      const page = await gateway.app.inject({ url, headers });
      const head = await gateway.app.inject({ method: 'HEAD', url, headers });
      expect(head.body).toBe('');
      expect(headersOf(head)).toEqual(headersOf(page));
    }
  });

  test('a page that a browser has is a 304, until anything on it is another', async () => {
    const tagOf = async (url: string, headers = {}) =>
      String((await gateway.get(url, { accept, ...headers })).headers['etag']);
    for (const url of ['/', '/api/outfits/']) {
      const tag = await tagOf(url);
      for (const method of ['GET', 'HEAD'] as const) {
        for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
          const headers = { host: 'shop.test', accept, 'if-none-match': known };
          const again = await gateway.app.inject({ method, url, headers });
          expect({ status: again.statusCode, body: again.body }).toEqual({ status: 304, body: '' });
          expect(again.headers).toMatchObject({
            etag: tag,
            'cache-control': 'private, no-cache',
            vary: expect.stringMatching(/^Accept\b/),
          });
          expect(again.headers).not.toHaveProperty('content-type');
        }
      }
      // Neither is the other: the JSON, and the page of it.
      const { etag } = (await gateway.get(url)).headers;
      expectPage(await gateway.get(url, { accept, 'if-none-match': String(etag) }));
      expect((await gateway.get(url, { 'if-none-match': tag })).statusCode).toBe(200);
      // Addresses that it shows are those of this host.
      expect(await tagOf(url, { host: 'other.test' })).not.toBe(tag);
    }
    const list = await tagOf('/api/outfits/');
    expect(await tagOf('/api/outfits/?a=1')).not.toBe(list);
    await gateway.database.pool.query(
      'UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = (SELECT max(id) FROM outfits)',
    );
    const { results } = (await gateway.get('/api/outfits/')).json();
    const page = expectPage(await gateway.get('/api/outfits/', { accept, 'if-none-match': list }));
    const json = textsOf(page, 'pre').find((text) => text.startsWith('{')) ?? '';
    expect(JSON.parse(json).results).toEqual(results);
    for (const url of ['/nope', '/api/nope', '/api/outfits/?page=99']) {
      expectPage(await gateway.get(url, { accept, 'if-none-match': '*' }), 404);
    }
  });

  test('the home page names what the service offers, for people and for programs', async () => {
    const page = expectPage(await gateway.get('/', { accept }));
    expect(textsOf(page, 'p').join('\n')).toContain('45 outfits');
    const response = await gateway.get('/');
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      vary: 'Accept',
      allow: 'GET, HEAD',
    });
    const { name, version, outfits, links } = response.json();
    expect({ name, outfits }).toEqual({ name: 'outfit-gateway', outfits: 45 });
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
    for (const link of Object.values<string>(links)) {
      const { pathname } = new URL(link);
      const { statusCode } = await gateway.get(pathname, { accept });
      expect({ pathname, statusCode }).toEqual({ pathname, statusCode: 200 });
      expect(hrefsOf(page)).toContain(pathname);
    }
    expect((await gateway.get('/', { host: 'a b' })).statusCode).toBe(400);
  });
});

test('a page may load pictures and its own style, and nothing else', async () => {
  const gateway = await open(rows, { MEDIA_URL: 'https://pictures.test/a' });
  for (const url of ['/', '/api/outfits/', '/api/nope']) {
    const response = await gateway.get(url, { accept });
    const [style = ''] = /(?<=<style>).*?(?=<\/style>)/s.exec(response.body) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(response.headers['content-security-policy']).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; img-src 'self' data: https://pictures.test; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    );
    const elements = elementsOf(response.body);
    expect(elements.filter(({ name }) => ['script', 'iframe', 'object'].includes(name))).toEqual(
      [],
    );
    expect(elements.filter(({ attributes }) => 'style' in attributes)).toEqual([]);
  }
});

describe('text of people', () => {
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
  const names = ['title', 'description', 'imageKey', 'videoKey', 'backgroundColor'] as const;
  const userNames = ['username', 'firstName', 'lastName', 'avatarKey'] as const;

  /** An outfit with the same text wherever there can be one; a user of its own, as names are unique. */
  const outfitWith = (text: string, id: number): OutfitRow => ({
    ...template,
    id,
    userId: id,
    ...Object.fromEntries(names.map((name) => [name, text])),
    imageOriginalKey: text,
    user: {
      ...template.user,
      id,
      ...Object.fromEntries(userNames.map((name) => [name, text])),
      username: `${id}${text}`,
    },
  });

  const allowed = new Set(
    'a article bdi body button code details div footer form h1 h2 head header html img label li link main meta nav option p path pre rect search section select span strong style summary svg time title ul'.split(
      ' ',
    ),
  );
  const attributes = new Set(
    'alt aria-current aria-hidden aria-label aria-labelledby charset class color-scheme content d datetime decoding dir fetchpriority fill focusable for height href id lang loading max maxlength method min name open rel selected src title type value viewBox width'.split(
      ' ',
    ),
  );

  const check = async (texts: readonly string[]) => {
    const gateway = await open(
      texts.map((text, index) => outfitWith(text, index + 1)),
      {
        PAGE_SIZE: '1000',
      },
    );
    const { results } = (await gateway.get('/api/outfits/?ordering=id')).json();
    const page = expectPage(await gateway.get('/api/outfits/?ordering=id', { accept }));
    const home = expectPage(await gateway.get('/', { accept }));
    for (const element of [...elementsOf(page), ...elementsOf(home)]) {
      expect(allowed).toContain(element.name);
      for (const [name, value] of Object.entries(element.attributes)) {
        expect(attributes).toContain(name);
        if (name === 'src') expect(value).toMatch(/^https:\/\/media\.example\.com\//);
        if (name === 'href') expect(value).toMatch(/^(https?:\/\/|[/?#]|data:image\/svg\+xml,)/);
      }
    }
    // Nothing on the page can turn the direction of what is beside it, and no control is in it.
    expect(/[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/u.exec(page + home)).toBeNull();
    // Each title is there as a text of its own, in the right place.
    const titles = textsOf(page, 'h2').slice(0, results.length);
    const visible = (text: string) => {
      const shown = text.replace(/[^\P{Cc}\t\n]|[\u2028-\u202e\u2066-\u2069\u2400-\u2421]/gu, '');
      return shown === 'Without a title' || !/[^\s\p{Cf}]/u.test(shown) ? '' : shown;
    };
    expect(titles.map(visible)).toEqual(
      results.map(({ title }: { title: string }) => visible(title)),
    );
    expect(titles.map((title) => title.trim())).not.toContain('');
    const json = textsOf(page, 'pre').find((text) => text.startsWith('{')) ?? '';
    expect(JSON.parse(json).results).toEqual(results);
  };

  test('is text on the page, whatever it says', () => check(nasty));

  test('is text on the page, at random', async () => {
    const anything = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc
        .array(fc.constantFrom(...nasty.filter(({ length }) => length < 100)), { maxLength: 4 })
        .map((parts) => parts.join('')),
    );
    const texts = fc
      .sample(anything, 100)
      .map((text) => Buffer.from(text.replaceAll('\0', '')).toString());
    await check(texts);
  });
});

test('only the owner sees a private outfit, on pages too', async () => {
  const mine = { ...template, id: 1, private: true, title: 'Only mine' };
  const gateway = await open([mine, { ...template, id: 2, private: false, title: 'For all' }], {
    PRIVATE_OUTFITS: 'owner',
    AUTH_JWT_SECRET: secret,
  });
  const ask = async (url: string, userId?: number) =>
    expectPage(await gateway.get(url, { accept, ...(await signIn(userId)) }));
  for (let round = 0; round < 2; round++) {
    expect(await ask('/api/outfits/', template.userId)).toContain('Only mine');
    for (const page of [await ask('/api/outfits/'), await ask('/api/outfits/', 77)]) {
      expect(page).not.toContain('Only mine');
      expect(page).toContain('For all');
    }
    // The first page is the same for all.
    for (const userId of [undefined, template.userId]) {
      const home = await ask('/', userId);
      expect(home).not.toContain('Only mine');
      expect(textsOf(home, 'p').join('\n')).toContain('1 outfit');
    }
  }
  const page = await gateway.get('/api/outfits/', { accept, authorization: 'Bearer x.y.z' });
  expectPage(page, 401);
  // No token is ever repeated.
  expect(page.body).not.toContain('x.y.z');
});

test.each([
  [{}, 'nobody can sign in here'],
  [{ AUTH_JWT_SECRET: secret }, 'Writing needs a bearer token'],
  [{ AUTH_JWT_SECRET: secret, WRITES: 'off' }, 'Writing is switched off for now'],
  [
    { AUTH_JWT_SECRET: secret, LEGACY_MODE: 'canary:100', LEGACY_URL: 'http://127.0.0.1:9' },
    'The old service still takes all writes',
  ],
])('with %j, the pages say: %s', async (environment, sentence) => {
  const gateway = await open(rows, environment);
  for (const url of ['/', '/api/outfits/']) {
    const headers = { accept, 'x-forwarded-for': '10.0.0.1' };
    expect(textsOf(expectPage(await gateway.get(url, headers)), 'p').join('\n')).toContain(
      sentence,
    );
  }
  const { writing } = (await gateway.get('/')).json();
  expect(writing).toEqual({
    possible: sentence.startsWith('Writing needs'),
    detail: expect.stringContaining(sentence),
  });
});

test('what is not there has no link, and no question in GraphQL', async () => {
  const gateway = await open(rows, { GRAPHIQL: 'off' });
  const page = expectPage(await gateway.get('/api/outfits/', { accept }));
  expect(hrefsOf(page).filter((href) => href.includes('graphql'))).toEqual([]);
  expect(hrefsOf(page)).toContain('/api/docs');
});

test('behind PUBLIC_URL every link begins with it', async () => {
  const gateway = await open(rows, { PUBLIC_URL: 'https://example.com/shop' });
  for (const url of ['/', '/api/outfits/']) {
    const hrefs = hrefsOf(expectPage(await gateway.get(url, { accept })));
    expect(hrefs.filter((href) => href.startsWith('/'))).toEqual([]);
    expect(hrefs).toContain('https://example.com/shop/api/outfits/');
  }
});

test.each([
  [{}, 'Accept, Accept-Encoding'],
  [{ COMPRESSION: 'all' }, 'Accept, Accept-Encoding'],
  [{ COMPRESSION: 'off' }, 'Accept'],
] as const)(
  'with %j a page is sent in the coding that the browser takes, and says so',
  async (environment, vary) => {
    const gateway = await open(rows, environment);
    for (const url of ['/', '/api/outfits/', '/outfits/', '/nope']) {
      const plain = await gateway.get(url, { accept, 'x-request-id': 'the-same' });
      expect(plain.headers).toMatchObject({ vary });
      expect(plain.headers).not.toHaveProperty('content-encoding');
      for (const [encoding, read] of codings) {
        const headers = { accept, 'accept-encoding': encoding, 'x-request-id': 'the-same' };
        const response = await gateway.get(url, headers);
        if (vary === 'Accept') {
          expect(headersOf(response)).toEqual(headersOf(plain));
          continue;
        }
        // The first time, and from memory.
        for (const { headers: sent, rawPayload } of [response, await gateway.get(url, headers)]) {
          expect(sent).toMatchObject({ vary, 'content-encoding': encoding });
          expect(sent['content-length']).toBe(String(rawPayload.length));
          expect(read(rawPayload).equals(plain.rawPayload)).toBe(true);
        }
        const tag = String(response.headers['etag']);
        if (url === '/nope') continue;
        expect(tag).not.toBe(plain.headers['etag']);
        const known = await gateway.get(url, { ...headers, 'if-none-match': tag });
        expect([known.statusCode, known.headers['vary'], known.body]).toEqual([304, vary, '']);
        expect(known.headers).not.toHaveProperty('content-encoding');
      }
    }
  },
);

test('while the database is away, the first page says so', async () => {
  const gateway = await open();
  await gateway.database.pool.query('ALTER TABLE outfits RENAME TO gone');
  const page = expectPage(await gateway.get('/', { accept }));
  expect(textsOf(page, 'p').join()).toContain('The database is away');
  expect((await gateway.get('/')).json().outfits).toBeNull();
  expectPage(await gateway.get('/api/outfits/', { accept }), 503);
});

test('any path of the table is a page: a record, and a list of other things', async () => {
  const documentOf = <Data>(text: string) =>
    parse(text) as unknown as TypedDocumentNode<Data, Record<string, unknown>>;
  const schema = extend(
    `extend type Query { told(text: String): Told! }
     type Told { count: Int! nextPage: Int previousPage: Int results: [String!]! }`,
    {
      'Query.told': (_root, { text }) => ({ count: 1, results: [text ?? 'nothing'] }),
      'Told.count': (told) => (told as { count: number }).count,
    },
  );
  const routes: readonly Route[] = [
    ...ownRoutes.filter(({ record }) => !record),
    {
      path: '/api/outfits/:id/',
      name: 'Outfit',
      description: 'One outfit.',
      record: documentOf(
        'query One($id: Int!) { record: outfit(databaseId: $id) { id: databaseId title } }',
      ),
    },
    {
      path: '/api/told/',
      name: 'Told',
      description: 'What was said.',
      list: documentOf(
        'query ($text: String) { page: told(text: $text) { count next: nextPage previous: previousPage results } }',
      ),
    },
  ];
  const gateway = await open(rows, {}, { schema, routes });
  const record = expectPage(await gateway.get(`/api/outfits/${template.id}/`, { accept }));
  expect(textsOf(record, 'h1')).toEqual(['Outfit']);
  expect(JSON.parse(textsOf(record, 'pre')[1] ?? '')).toEqual({
    id: template.id,
    title: template.title,
  });
  expect(JSON.parse(textsOf(record, 'pre')[3] ?? '')).toEqual({ id: template.id });
  expectPage(await gateway.get('/api/outfits/1000000/', { accept }), 404);

  const hostile = `'; touch /tmp/x; $(id) \`id\` "\\ é`;
  const page = expectPage(
    await gateway.get(`/api/told/?text=${encodeURIComponent(hostile)}`, { accept }),
  );
  const curl = textsOf(page, 'pre').find((text) => text.startsWith('curl')) ?? '';
  const words = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }; ${curl}`]);
  expect(JSON.parse(words.toString().split('\0')[4] ?? '').variables).toEqual({
    text: hostile,
    page: 1,
  });
  expect(JSON.parse(textsOf(page, 'pre')[1] ?? '').results).toEqual([hostile]);
});

test('what the old service answers a browser passes as it is', async () => {
  const answer = '{"detail":"of the old service"}';
  const old = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(answer);
  });
  await new Promise<void>((settle) => old.listen(0, '127.0.0.1', settle));
  onTestFinished(() => void old.close());
  const { port } = old.address() as AddressInfo;
  const gateway = await open(rows, {
    LEGACY_MODE: 'shadow',
    LEGACY_URL: `http://127.0.0.1:${port}`,
  });
  const base = await gateway.app.listen({ port: 0, host: '127.0.0.1' });
  for (const path of ['/api/outfits/', '/api/nope/']) {
    const response = await fetch(`${base}${path}`, { headers: { accept } });
    expect(await response.text()).toBe(answer);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('vary')).toBeNull();
  }
  // The first page is this gateway's own.
  const home = await fetch(base, { headers: { accept } });
  expect(home.headers.get('content-type')).toBe(html);
});

test('BROWSABLE=off: there are no pages, and nothing at /', async () => {
  const gateway = await open(rows, { BROWSABLE: 'off' });
  const page = await gateway.get('/api/outfits/', { accept });
  expect(page.headers['content-type']).toBe('application/json');
  expect(page.body).toBe((await gateway.get('/api/outfits/')).body);
  expect((await gateway.get('/api/outfits/', { accept: 'text/html' })).statusCode).toBe(406);
  for (const value of [accept, 'application/json']) {
    const home = await gateway.get('/', { accept: value });
    expect(home.statusCode).toBe(404);
    expect(home.body).toBe('{"detail":"Not found."}');
  }
});
