// HTTP_PROXY, HTTPS_PROXY and NO_PROXY, for whatever verify, replay, import and the key set ask.
import { createServer } from 'node:http';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { HttpClient } from '../../src/http/client.ts';
import { closeServer, listen } from '../support/http/listen.ts';

const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'];
beforeEach(() => {
  for (const name of names.flatMap((name) => [name, name.toLowerCase()]))
    vi.stubEnv(name, undefined);
});
afterEach(() => vi.unstubAllEnvs());

/** A proxy that answers in place of others, and opens no tunnel. */
async function startProxy() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('proxied');
  });
  server.on('connect', ({ url }, socket) => {
    asked.push(`CONNECT ${url}`);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  const port = await listen(server);
  onTestFinished(() => closeServer(server));
  return { base: `http://127.0.0.1:${port}`, asked };
}

function ask(origin: string) {
  const client = new HttpClient();
  onTestFinished(() => client.close());
  const { signal } = new AbortController();
  return client.ask(origin, { target: "/a'?b=%zz", headers: {}, signal, maxBytes: 100 });
}

test('a proxy is asked for hosts that NO_PROXY does not name', async () => {
  const proxy = await startProxy();
  vi.stubEnv('HTTP_PROXY', proxy.base);
  vi.stubEnv('HTTPS_PROXY', proxy.base);
  expect((await ask('http://old.test')).body.toString()).toBe('proxied');
  await expect(ask('https://old.test')).rejects.toThrow();
  expect(proxy.asked).toEqual(["http://old.test/a'?b=%zz", 'CONNECT old.test:443']);

  const other = await startProxy();
  vi.stubEnv('NO_PROXY', 'example.com,127.0.0.1');
  await ask(other.base);
  expect([proxy.asked.length, other.asked]).toEqual([2, ["/a'?b=%zz"]]);
});

test('a proxy that is not a URL is named', async () => {
  vi.stubEnv('HTTPS_PROXY', 'proxy.test:3128');
  await expect(ask('https://old.test')).rejects.toThrow(
    'HTTP_PROXY and HTTPS_PROXY must be the http or https URL of a proxy',
  );
});
