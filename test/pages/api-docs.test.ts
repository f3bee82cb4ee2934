// /api/docs: the document for people: clients that accept HTML.
import { expect, test } from 'vitest';
import { openGateway, useGateway } from '../support/gateway.ts';

const accept =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';

const gateway = useGateway('PostgreSQL');

const filesOf = (html: string) =>
  [...html.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, file]) => `/api/${file}`);

test('each of its encodings has a tag of its own, from the first time on', async () => {
  const fresh = await openGateway('PostgreSQL');
  for (let time = 0; time < 3; time += 1) {
    const { headers } = await fresh.get('/api/docs', { accept, 'accept-encoding': 'br' });
    const encoding = headers['content-encoding'];
    expect(String(headers['etag']).endsWith('-br"')).toBe(encoding === 'br');
  }
  await fresh.close();
});

test('a browser gets a page that runs nothing but its own files', async () => {
  const response = await gateway.get('/api/docs', { accept });
  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': expect.stringMatching(
      /^default-src 'none'; script-src 'self'; style-src 'self'; /,
    ),
    vary: 'Accept, Accept-Encoding',
  });
  expect(response.body).not.toMatch(/(?:src|href)="(?:https?:)?\/\/|<script>|<style|\son\w+=/);
  const files = filesOf(response.body);
  expect(files).toHaveLength(4);
  for (const file of files) {
    const { statusCode, headers, body } = await gateway.get(file, { accept: '*/*' });
    expect(statusCode).toBe(200);
    expect(headers['content-type']).toMatch(
      file.endsWith('.css') ? /^text\/css;/ : /^text\/javascript;/,
    );
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(body.length).toBeGreaterThan(100);
  }
});

test('its files are compressed for clients that accept that', async () => {
  const [file = ''] = filesOf((await gateway.get('/api/docs', { accept })).body);
  const plain = await gateway.get(file);
  await gateway.get(file, { 'accept-encoding': 'br' });
  const packed = await gateway.get(file, { 'accept-encoding': 'br' });
  expect(packed.headers['content-encoding']).toBe('br');
  expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 3);
});

test('a page that has not changed is not sent again', async () => {
  const { headers } = await gateway.get('/api/docs', { accept });
  const again = { accept, 'if-none-match': String(headers['etag']) };
  expect((await gateway.get('/api/docs', again)).statusCode).toBe(304);
  const head = await gateway.app.inject({
    method: 'HEAD',
    url: '/api/docs',
    headers: { accept, host: 'shop.test' },
  });
  expect(head.headers).toMatchObject({
    etag: headers['etag'],
    'content-length': headers['content-length'],
  });
});

test.each([undefined, '', '*/*', 'text/html;q=0.5, application/json'])(
  'Accept: %s gets the page too',
  async (header) => {
    const headers = header === undefined ? {} : { accept: header };
    const { statusCode, body } = await gateway.get('/api/docs', headers);
    expect([statusCode, body]).toEqual([200, expect.stringContaining('<title>REST API')]);
  },
);

test('the path with a slash leads to the one without', async () => {
  const { statusCode, headers } = await gateway.get('/api/docs/', { accept });
  expect([statusCode, headers['location']]).toEqual([301, '/api/docs']);
});

test.each([
  ['/api/docs', 'application/json'],
  ['/api/docs', 'text/html;q=0, */*'],
  ['/api/docs/', 'application/json'],
  ['/api/docs/x/page.js', '*/*'],
  ['/api/docs/x', '*/*'],
])('%s for Accept: %s is as any path that there is not', async (url, header) => {
  const ask = async (target: string) => {
    const headers = { accept: header, 'x-request-id': 'same' };
    const response = await gateway.get(target, headers);
    return { status: response.statusCode, body: response.body, headers: response.headers };
  };
  const nothing = await ask('/api/nothing/');
  const { headers, ...answer } = await ask(url);
  expect({ ...answer, headers: { ...headers, date: nothing.headers['date'] } }).toEqual(nothing);
  expect(answer.status).toBe(404);
});

test('no other method is known there', async () => {
  for (const method of ['POST', 'OPTIONS', 'DELETE'] as const) {
    const response = await gateway.app.inject({ method, url: '/api/docs', headers: { accept } });
    expect(response.statusCode).toBe(404);
    expect(response.body).toContain('Not found.');
  }
});

test('BROWSABLE=off switches the page off, and leaves the document', async () => {
  const closed = await openGateway('PostgreSQL', [], { BROWSABLE: 'off' });
  expect((await closed.get('/api/docs', { accept })).statusCode).toBe(404);
  expect((await closed.get('/api/openapi.json', { accept })).statusCode).toBe(200);
  await closed.close();
});
