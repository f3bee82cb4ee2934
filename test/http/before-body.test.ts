// Who is not let in learns so at once, however large the body that is still to come.
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { secret } from '../support/http/tokens.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await openGateway('PostgreSQL', [], { AUTH_JWT_SECRET: secret, RATE_LIMIT: '5/day' });
  await gateway.app.listen({ port: 0, host: '127.0.0.1' });
});
afterAll(() => gateway.close());

/** Sends the head of a POST and the first byte of a megabyte; gives the first line of the answer. */
async function begin(path: string, headers: readonly string[]): Promise<string> {
  const { port } = gateway.app.server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  const lines = [
    'Host: a',
    'Content-Type: application/json',
    'Content-Length: 1000000',
    ...headers,
  ];
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return answer.toString('latin1').split('\r\n', 1)[0] ?? '';
}

test.each(['/graphql', '/api/outfits/'])('on %s', async (path) => {
  expect(await begin(path, ['Authorization: Bearer x'])).toBe('HTTP/1.1 401 Unauthorized');
});

test('on /graphql, also who has sent too much', async () => {
  // Uses up the day of this address.
  while ((await gateway.get('/api/outfits/')).statusCode === 200);
  for (const headers of [[], ['Authorization: Bearer x']]) {
    expect(await begin('/graphql', headers)).toBe('HTTP/1.1 429 Too Many Requests');
  }
});
