// The listing at the front door: every row of the decided table; records and orderings on both databases.
import type { LightMyRequestResponse } from 'fastify';
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { databaseKinds, openForTest, useGateway } from '../support/gateway.ts';
import { sendRaw } from '../support/http/raw-http.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const allow = 'GET, POST, HEAD, OPTIONS';

/** Status line, the headers that the contract names, and the body, byte for byte. */
function wire(response: LightMyRequestResponse): string {
  const names = ['allow', 'content-length', 'content-type', 'location', 'vary'];
  const headers = names.flatMap((name) =>
    name in response.headers ? [`${name}: ${response.headers[name]}`] : [],
  );
  return `${response.statusCode}\n${headers.join('\n')}\n\n${response.rawPayload.toString('utf8')}\n`;
}

function expectRefusal(response: LightMyRequestResponse, status: number, detail: string): void {
  expect([response.statusCode, response.body]).toEqual([status, JSON.stringify({ detail })]);
  const headers = { allow, vary: 'Accept', 'content-type': 'application/json' };
  expect(response.headers).toMatchObject(headers);
}

describe.each(databaseKinds)('the listing on %s', (kind) => {
  const gateway = useGateway(kind, rows);

  describe('answers exactly the golden bytes and headers', () => {
    test.each([
      ['first-page', '/api/outfits/'],
      ['middle-page', '/api/outfits/?page=2'],
      ['last-page', '/api/outfits/?page=last'],
      ['like-count', '/api/outfits/?ordering=like_count'],
      ['like-count-descending', '/api/outfits/?ordering=-like_count&page=3'],
      ['unknown-parameters', '/api/outfits/?b=%20&page=2&a=~*!&a=%C3%A9&blank='],
      ['bad-ordering', '/api/outfits/?ordering=nope'],
      ['bad-page', '/api/outfits/?page=4'],
    ])('%s', async (name, url) => {
      await expect(wire(await gateway.get(url))).toMatchFileSnapshot(`../golden/${name}.http`);
    });
    test('options', async () => {
      const response = await gateway.app.inject({ method: 'OPTIONS', url: '/api/outfits/' });
      await expect(wire(response)).toMatchFileSnapshot('../golden/options.http');
    });
  });

  const idsOf = (response: LightMyRequestResponse): number[] =>
    response.json().results.map((record: { id: number }) => record.id);

  // The order itself is compared with models in test/outfits/visibility.test.ts and test/legacy/verify.test.ts.
  test.each([
    ['', '-created'],
    ['-created,-id', '-created'],
    ['-like_count,-id', '-like_count'],
    ['modified, id', 'modified'],
    ['-id,created', '-id'],
    ['created,-created,id,-modified', 'created'],
  ])('ordering=%s is the order of %s', async (several, one) => {
    const response = await gateway.get(`/api/outfits/?ordering=${several}&page=2`);
    const same = await gateway.get(`/api/outfits/?ordering=${one}&page=2`);
    expect(idsOf(response)).toEqual(idsOf(same));
    const written = encodeURIComponent(several).replaceAll('%20', '+');
    expect(response.json().next).toContain(`ordering=${written}&`);
  });

  const noOrders = ['-like_count,-created', '-created,id', 'created,modified,id'];
  test.each(noOrders)('no list has the order %s', async (several) => {
    const response = await gateway.get(`/api/outfits/?ordering=${several}`);
    expect(response.statusCode).toBe(400);
    const advice =
      'give one field, or one field and id in the same direction, such as -created,-id.';
    expect(response.json()).toEqual({ ordering: [`No list is sorted by ${several}: ${advice}`] });
  });

  const unknown = ['-created,nope', 'id,', '--id,id', '-id,__proto__', `${'id,'.repeat(3000)}x`];
  test.each(unknown)('ordering=%s has a field that is unknown', async (several) => {
    const response = await gateway.get(`/api/outfits/?ordering=${several}`);
    expect(response.statusCode).toBe(400);
    expect(response.body).toMatch(/^{"ordering":\["Select a valid choice. /);
  });

  test('one record has the bytes of the list', async () => {
    const { results } = (await gateway.get('/api/outfits/?page=2')).json();
    for (const record of results) {
      const response = await gateway.get(`/api/outfits/${record.id}/`);
      expect(response.body).toBe(JSON.stringify(record));
      expect(response.headers).toMatchObject({
        allow: 'GET, HEAD, OPTIONS',
        vary: 'Accept',
        'content-type': 'application/json',
        'cache-control': 'no-cache',
      });
    }
    const [{ id, user }] = results;
    const head = await gateway.app.inject({ method: 'HEAD', url: `/api/outfits/${id}/` });
    expect(head.body).toBe('');
    const length = Buffer.byteLength(JSON.stringify(results[0]));
    expect(Number(head.headers['content-length'])).toBe(length);
    const page = await gateway.get(`/api/outfits/${id}/`, { accept: 'text/html' });
    expect(page.headers['content-type']).toMatch(/^text\/html/);
    expect(page.body).toContain(`/outfits/${id}"`);
    expect(page.body).toContain(user.username);
    for (const method of ['PUT', 'PATCH', 'DELETE', 'POST'] as const) {
      const refused = await gateway.app.inject({ method, url: `/api/outfits/${id}/` });
      expect([refused.statusCode, refused.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    }
  });
});

describe('the listing', () => {
  const gateway = useGateway('PostgreSQL', rows);

  // Every other page text is tried in test/http/query-string.test.ts.
  test('a fragment after # is not read as part of the page', async () => {
    const response = await gateway.get('/api/outfits/?page=1#page=2');
    expect(response.json().next).toBe('http://shop.test/api/outfits/?page=2');
  });

  test('a bad ordering wins over a bad page', async () => {
    expect((await gateway.get('/api/outfits/?page=0&ordering=title')).statusCode).toBe(400);
  });

  const others = ['PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'] as string[] as 'PUT'[];
  test.each(others)('%s is not allowed, whatever its body', async (method) => {
    const headers = { 'content-type': 'text/plain' };
    const request = { method, url: '/api/outfits/', headers, payload: '{' };
    const response = await gateway.app.inject(request);
    expectRefusal(response, 405, `Method "${method}" not allowed.`);
  });

  const acceptable = [
    ...['', '*/*', 'application/*', 'Application/JSON; indent=4', 'application/json;q=0'],
    ...['text/html, */*', 'text/html;q=0.5, */*;q=0.6'],
  ];
  test.each(acceptable)('Accept: %s gives JSON', async (accept) => {
    const { headers, statusCode } = await gateway.get('/api/outfits/', { accept });
    expect([statusCode, headers['content-type']]).toEqual([200, 'application/json']);
  });

  const unacceptable = ['application/xml, text/*', '*', 'application/', ',', 'application/a+json'];
  test.each(unacceptable)('Accept: %s is 406', async (accept) => {
    const response = await gateway.get('/api/outfits/', { accept });
    expectRefusal(response, 406, 'Could not satisfy the request Accept header.');
  });

  test.each(['evil.test/path', 'a b', 'user@host', '<x>', '[::1', 'host:port', 'a_b'])(
    'Host: %s is 400',
    async (host) => {
      for (const url of ['/api/outfits', '/api/nope']) {
        const response = await gateway.get(url, { host });
        expect(response.statusCode).toBe(400);
        expect(response.body).toBe('{"detail":"Invalid Host header."}');
      }
      const wrong = { host, accept: 'application/xml' };
      const response = await gateway.get('/api/outfits/?ordering=nope', wrong);
      expectRefusal(response, 400, 'Invalid Host header.');
    },
  );

  test.each(['[::1]:8000', '10.0.0.1', 'shop.test:8080', 'SHOP.test'])(
    'links repeat Host: %s',
    async (host) => {
      const response = await gateway.get('/api/outfits/', { host });
      expect(response.json().next).toBe(`http://${host}/api/outfits/?page=2`);
    },
  );

  test('forwarded headers do not count unless a proxy is trusted', async () => {
    const forwarded = { 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'https' };
    const response = await gateway.get('/api/outfits/', forwarded);
    expect(response.json().next).toBe('http://shop.test/api/outfits/?page=2');
  });

  test.each(['7.0', '+7', '%207', '7%20', '-7', '7e0', '0x7', '\u0667'])(
    'returns 404 for a record and its pages by the id "%s"',
    async (id) => {
      for (const url of [`/api/outfits/${id}/`, `/outfits/${id}`, `/users/${id}`]) {
        const { statusCode } = await gateway.get(encodeURI(url).replaceAll('%25', '%'));
        expect([url, statusCode]).toEqual([url, 404]);
      }
      expect((await gateway.get('/api/outfits/007/')).statusCode).toBe(200);
    },
  );

  test.each(['0', '2147483648', 'x', '%00', '9'.repeat(400)])(
    'there is no record %s',
    async (id) => {
      const { statusCode, body } = await gateway.get(`/api/outfits/${id}/`);
      expect([statusCode, body]).toEqual([404, '{"detail":"Not found."}']);
    },
  );

  test('the path without its slash redirects, with the query as it was', async () => {
    for (const [method, status] of [
      ['GET', 301],
      ['HEAD', 301],
      ['POST', 308],
    ] as const) {
      const response = await gateway.app.inject({ method, url: '/api/outfits?page=2&a=%zz' });
      expect(response.statusCode).toBe(status);
      expect(response.headers.location).toBe('/api/outfits/?page=2&a=%zz');
    }
  });

  test.each(['/api/', '/api/nope', '/api/outfits/1/2/', '/API/outfits/', '/api/%zz', '/nope'])(
    '%s is not found',
    async (url) => {
      const response = await gateway.get(url, { accept: 'application/xml' });
      expect(response.statusCode).toBe(404);
      expect(response.body).toBe('{"detail":"Not found."}');
      expect(response.headers['content-type']).toBe('application/json');
    },
  );

  const invalidHost = /^HTTP\/1.1 400 [\s\S]*\r\n\r\n{"detail":"Invalid Host header\."}$/;
  /** Sends a request with these lines, and gives its answer. */
  const send = (target: string, lines = 'Host: shop.test\r\n', version = '1.1') =>
    sendRaw(gateway.app, `GET ${target} HTTP/${version}\r\n${lines}Connection: close\r\n\r\n`);

  test('no Host is 400, and so are two, as it is not known which one is meant', async () => {
    expect(await send('/api/outfits/', '')).toMatch(/^HTTP\/1.1 400 /);
    const line = 'Host: shop.test\r\n';
    for (const path of ['/api/outfits/', '/api/outfits', '/api/nope']) {
      expect(await send(path, line + line)).toMatch(invalidHost);
      expect(await send(path, `${line}hOST: evil.test\r\n`)).toMatch(invalidHost);
    }
  });

  test('a target in absolute form is routed, and its scheme and authority are those of links', async () => {
    const path = '/api/outfits/?ordering=id&page=2';
    const next = (authority: string) =>
      `"next":"http://${authority}/api/outfits/?ordering=id&page=3"`;
    expect(await send(path)).toContain(next('shop.test'));
    for (const authority of ['other.example', 'OTHER.example:8080', '[::1]:80']) {
      expect(await send(`http://${authority}${path}`)).toContain(next(authority));
      expect(await send(`http://${authority}${path}`, 'Host: <bad>\r\n')).toContain(
        next(authority),
      );
      expect(await send(`HTTP://${authority}${path}`, '', '1.0')).toContain(next(authority));
    }
    expect(await send(`HTTPS://a.example${path}`)).toContain('"next":"https://a.example/api/');
    expect(await send('http://other.example')).toContain('{"count":45,"page":1,');
    expect(await send('http://other.example?a=/api/outfits/')).not.toContain('"next"');
    expect(await send('http://other.example/graphql?query={__typename}')).toContain('"Query"');
    for (const bad of ['', 'user@shop.test', 'user:word@shop.test', 'a_b', 'shop.test:', '%41']) {
      expect(await send(`http://${bad}${path}`)).toMatch(invalidHost);
    }
    expect(await send(`http://shop.test${path}`, 'Host: a\r\nHost: a\r\n')).toMatch(invalidHost);
    expect(await send(`ftp://shop.test${path}`)).toMatch(/^HTTP\/1.1 404 /);
  });

  test('a request with an unknown expectation is answered', async () => {
    const answer = await send('/api/outfits/', 'Host: a\r\nExpect: foo\r\n');
    expect(answer).toMatch(/^HTTP\/1.1 200 [\s\S]*{"count":45,/);
  });
});

const gateway = useGateway('PostgreSQL', rows, {
  PUBLIC_URL: 'https://shop.test/base/',
  MEDIA_URL: 'https://new-media.test/m',
  VIDEO_URL: 'https://new-video.test',
  PAGE_SIZE: '7',
  TRUST_PROXY: '127.0.0.1',
});

test('PUBLIC_URL is the base of links, whatever the Host header says', async () => {
  const response = await gateway.get('/api/outfits/?page=2', { host: '<bad>' });
  expect(response.json()).toMatchObject({
    next: 'https://shop.test/base/api/outfits/?page=3',
    previous: 'https://shop.test/base/api/outfits/?page=1',
  });
});

test.each([
  ['GET', '/api/outfits?page=2&a=%zz', 301, '/api/outfits/?page=2&a=%zz'],
  ['POST', '/api/outfits', 308, '/api/outfits/'],
  ['GET', '/api/outfits/7', 301, '/api/outfits/7/'],
  ['GET', '/api/docs/', 301, '/api/docs'],
  ['POST', '/graphql/?query={a}', 308, '/graphql?query={a}'],
  ['GET', '/outfits?q=a', 301, '/outfits/?q=a'],
  ['GET', '/users/5/', 301, '/outfits/?user=5'],
] as const)('%s %s redirects below the path of PUBLIC_URL', async (method, url, status, path) => {
  const accept = 'text/html, application/json';
  const answer = await gateway.app.inject({ method, url, headers: { accept } });
  expect([answer.statusCode, answer.headers.location]).toEqual([status, `/base${path}`]);
});

test('PAGE_SIZE, MEDIA_URL and VIDEO_URL shape every answer, with no change of the data', async () => {
  const { results } = (await gateway.get('/api/outfits/?ordering=id')).json();
  expect(results).toHaveLength(7);
  for (const [index, record] of results.entries()) {
    expect(record.image_key).toBe(`https://new-media.test/m/${rows[index]?.imageKey}`);
    const videoKey = rows[index]?.videoKey;
    expect(record.video).toBe(videoKey ? `https://new-video.test/${videoKey}` : null);
  }
});

test('an empty list has one page', async () => {
  const gateway = await openForTest('PostgreSQL');
  for (const page of ['', '1', 'last']) {
    const response = await gateway.get(`/api/outfits/?page=${page}`);
    expect(response.body).toBe('{"count":0,"next":null,"previous":null,"results":[]}');
  }
  expect((await gateway.get('/api/outfits/?page=2')).statusCode).toBe(404);
});
