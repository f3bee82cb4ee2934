// /api/docs: the document for people: clients that accept HTML.
import { expect, test } from 'vitest';
import { openForTest, useGateway } from '../support/gateway.ts';
import { accept } from '../support/http/html.ts';

const gateway = useGateway('PostgreSQL');

const filesOf = (html: string) =>
  [...html.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, file]) => `/api/${file}`);

test('each of its encodings has a tag of its own, from the first time on', async () => {
  const fresh = await openForTest('PostgreSQL');
  for (let time = 0; time < 3; time += 1) {
    const { headers } = await fresh.get('/api/docs', { accept, 'accept-encoding': 'br' });
    const encoding = headers['content-encoding'];
    expect(String(headers['etag']).endsWith('-br"')).toBe(encoding === 'br');
  }
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
    const { statusCode, headers, rawPayload } = await gateway.get(file);
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({
      'content-type': `text/${file.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`,
      'cache-control': 'public, max-age=31536000, immutable',
    });
    // As all answers, when it is asked for a second time.
    await gateway.get(file, { 'accept-encoding': 'br' });
    const packed = await gateway.get(file, { 'accept-encoding': 'br' });
    expect(packed.headers['content-encoding']).toBe('br');
    expect(packed.rawPayload.length).toBeLessThan(rawPayload.length);
  }
});

test('a page that has not changed is not sent again', async () => {
  const { headers } = await gateway.get('/api/docs', { accept });
  const again = { accept, 'if-none-match': String(headers['etag']) };
  expect((await gateway.get('/api/docs', again)).statusCode).toBe(304);
  const head = await gateway.app.inject({ method: 'HEAD', url: '/api/docs', headers: { accept } });
  for (const name of ['etag', 'content-length']) expect(head.headers[name]).toBe(headers[name]);
});

test.each(['', '*/*', 'text/html;q=0.5, application/json'])(
  'Accept: %s gets the page too',
  async (header) => {
    const { statusCode, body } = await gateway.get('/api/docs', { accept: header });
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
])('%s for Accept: %s is answered as any unknown path', async (url, header) => {
  const ask = async (target: string) => {
    const sent = { accept: header, 'x-request-id': 'same' };
    const { statusCode, body, headers } = await gateway.get(target, sent);
    return { statusCode, body, headers: { ...headers, date: '' } };
  };
  expect(await ask(url)).toEqual(await ask('/api/nothing/'));
  expect(await ask(url)).toMatchObject({ statusCode: 404 });
});

test.each(['POST', 'OPTIONS', 'DELETE'] as const)('%s is not known there', async (method) => {
  const { statusCode, body } = await gateway.app.inject({ method, url: '/api/docs' });
  expect([statusCode, body]).toEqual([404, '{"detail":"Not found."}']);
});

test('BROWSABLE=off switches the page off, and leaves the document', async () => {
  const closed = await openForTest('PostgreSQL', [], { BROWSABLE: 'off' });
  expect((await closed.get('/api/docs', { accept })).statusCode).toBe(404);
  expect((await closed.get('/api/openapi.json', { accept })).statusCode).toBe(200);
});
