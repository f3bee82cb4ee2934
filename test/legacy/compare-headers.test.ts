// Headers that apps see: each difference is told by its name, and equal ones are not.
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../src/http/client.ts';
import { compareAnswers } from '../../src/legacy/compare/compare.ts';

const bases = { theirs: 'https://old.test', ours: 'http://localhost:4000' };
const origin = 'https://app.test';
type Headers = Readonly<Record<string, string>>;

const answer = (headers: Headers = {}, body: string | Buffer = '{}', status = 200): Answer => ({
  status,
  headers,
  body: Buffer.from(body as string),
});
const read = { method: 'GET', target: '/api/outfits/', headers: { origin } };
const preflight = {
  ...{ method: 'OPTIONS', target: '/api/outfits/' },
  headers: {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,x-app',
  },
};
const found = (theirs: Answer, ours: Answer, request: typeof read = read) =>
  compareAnswers(request, theirs, ours, bases).map(({ kind, where }) =>
    where === undefined ? kind : `${kind}:${where}`,
  );

describe('headers', () => {
  test.each<[string, Headers, Headers]>([
    ['set-cookie', { 'set-cookie': 'a=1; Path=/; HttpOnly' }, {}],
    ['set-cookie', { 'set-cookie': 'a=1; Path=/; HttpOnly' }, { 'set-cookie': 'a=1; Path=/' }],
    ['cache-control', { 'cache-control': 'max-age=60' }, { 'cache-control': 'no-cache' }],
    ['cache-control', {}, { 'cache-control': 'public, max-age=60' }],
    ['etag', { etag: '"a"' }, {}],
    ['etag', { etag: 'W/"a"' }, { etag: '"a"' }],
    ['link', { link: '<https://old.test/?page=2>; rel="next"' }, {}],
    ['x-total-count', { 'x-total-count': '5' }, { 'x-total-count': '6' }],
    ['content-language', { 'content-language': 'en' }, {}],
    ['last-modified', { 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' }, {}],
    ['access-control-allow-origin', { 'access-control-allow-origin': origin }, {}],
    ['access-control-allow-origin', {}, { 'access-control-allow-origin': '*' }],
    [
      'access-control-allow-credentials',
      { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' },
      { 'access-control-allow-origin': origin },
    ],
    [
      'access-control-expose-headers',
      { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'X-Total-Count' },
      { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'ETag' },
    ],
  ])('%s is told: %j, %j here', (name, theirs, ours) => {
    expect(found(answer(theirs), answer(ours))).toEqual([`header:${name}`]);
  });

  test.each<[Headers, Headers]>([
    [{ date: 'a', server: 'b', via: 'c', 'x-request-id': 'd', connection: 'close' }, {}],
    [{ 'x-frame-options': 'DENY' }, { 'x-served-by': 'gateway' }],
    [{}, { etag: '"a"', 'cache-control': 'private, no-cache' }],
    [{ etag: '"a"' }, { etag: '"b"' }],
    [{ vary: 'Accept, origin' }, { vary: 'Origin, Accept' }],
    [
      { 'set-cookie': 'a=1; Expires=Wed, 01 Jan 2031 00:00:00 GMT; Path=/, b=2' },
      { 'set-cookie': 'b=3, a=4; path=/; expires=Thu, 02 Jan 2031 00:00:00 GMT' },
    ],
    [
      { link: '<https://old.test/?page=2>; rel="next"' },
      { link: '<http://localhost:4000/?page=2>; rel="next"' },
    ],
    [{ 'access-control-allow-origin': '*' }, { 'access-control-allow-origin': origin }],
    [{ 'content-length': '2' }, { 'content-length': '3' }],
  ])('%j is as good as %j', (theirs, ours) => {
    expect(found(answer(theirs), answer(ours))).toEqual([]);
  });

  test('a sentence on cookies holds no value', () => {
    const [difference] = compareAnswers(
      read,
      answer({ 'set-cookie': 's=secret' }),
      answer(),
      bases,
    );
    expect(difference?.sentence).not.toContain('secret');
  });
});

describe('preflights', () => {
  const allowed = {
    'access-control-allow-origin': origin,
    'access-control-allow-methods': 'DELETE, GET, OPTIONS, PATCH, POST, PUT',
    'access-control-allow-headers': 'accept, Authorization, x-app',
    'access-control-max-age': '600',
  };

  test('another 2xx, body and what was not asked for are no difference', () => {
    const ours = {
      ...allowed,
      'access-control-allow-methods': 'GET, HEAD, POST',
      'access-control-allow-headers': 'authorization,x-app',
    };
    expect(found(answer(allowed), answer(ours, '', 204), preflight)).toEqual([]);
  });

  test.each<[string, Headers]>([
    ['access-control-max-age', { 'access-control-max-age': '5' }],
    ['access-control-allow-headers', { 'access-control-allow-headers': 'authorization' }],
    ['access-control-allow-headers', { 'access-control-allow-headers': 'x-app, accept' }],
    ['access-control-allow-methods', { 'access-control-allow-methods': 'GET' }],
    ['access-control-allow-origin', { 'access-control-allow-origin': 'https://two.test' }],
  ])('%s is told: %j', (name, changes) => {
    const ours = answer({ ...allowed, ...changes }, '', 204);
    expect(found(answer(allowed), ours, preflight)).toEqual([`header:${name}`]);
  });
});

describe('bodies that are no JSON by one flaw are named', () => {
  const text = '{"title":"é"}';
  test.each<[string, Buffer]>([
    ['byte-order-mark', Buffer.from(`\ufeff${text}`)],
    ['not-utf-8', Buffer.from(text, 'latin1')],
    ['trailing-bytes', Buffer.from(`${text}<!-- 3 ms -->`)],
    ['not-json', gzipSync(text)],
  ])('%s', (kind, body) => {
    expect(found(answer({}, body), answer({}, text))).toEqual([kind]);
    expect(found(answer({}, text), answer({}, body))).toEqual([kind]);
  });
});
