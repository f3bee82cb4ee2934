// Who is not let in learns so at once, however large the body that is still to come.
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { addressOf, sendPart } from '../support/faults/clients.ts';
import { useGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { secret } from '../support/http/tokens.ts';

const gateway = useGateway('PostgreSQL', [], { AUTH_JWT_SECRET: secret, RATE_LIMIT: '5/day' });

/** Sends the head of a POST and the first byte of a megabyte; gives the first line of the answer. */
async function begin(path: string, headers: string): Promise<string> {
  const head = `Host: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n${headers}`;
  const address = addressOf(await baseOfApp(gateway.app));
  const socket = await sendPart(address, `POST ${path} HTTP/1.1\r\n${head}\r\n{`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return answer.toString('latin1').split('\r\n', 1)[0] ?? '';
}

const token = 'Authorization: Bearer x\r\n';

test.each(['/graphql', '/api/outfits/'])('on %s', async (path) => {
  expect(await begin(path, token)).toBe('HTTP/1.1 401 Unauthorized');
});

test('on /graphql, also who has sent too much', async () => {
  // Uses up the day of this address.
  while ((await gateway.get('/api/outfits/')).statusCode === 200);
  for (const headers of ['', token]) {
    expect(await begin('/graphql', headers)).toBe('HTTP/1.1 429 Too Many Requests');
  }
});
