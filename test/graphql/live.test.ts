// Live answers over the transports that clients ask for: by what a client sees, in what fetch and sockets read.
import { beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { useGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 5, users: 2 })];
const id = rows[0]?.id ?? 0;
const oneOutfit = `subscription { outfit(databaseId: ${id}) { title } }`;

const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
let base: string;
beforeAll(async () => {
  base = await baseOfApp(gateway.app);
});

const retitle = (title: string) =>
  gateway.database.pool.query('UPDATE outfits SET title = $1 WHERE id = $2', [title, id]);
const answer = (title: string) => ({ data: { outfit: { title } } });

describe('multipart/mixed with subscriptionSpec=1.0', () => {
  const apollo =
    'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/graphql-response+json,application/json;q=0.9';

  async function ask(query: string, accept = apollo, headers: Record<string, string> = {}) {
    const response = await fetch(`${base}/graphql`, {
      method: 'POST',
      headers: { accept, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    /** The body up to the delimiter after as many parts. */
    const read = async (parts: number): Promise<string> => {
      while (text.split('\r\n--graphql').length <= parts) {
        const { value, done } = (await reader?.read()) ?? { done: true };
        if (done) break;
        text += value;
      }
      return text;
    };
    return { response, read, close: () => reader?.cancel() };
  }
  const part = (json: object) =>
    `\r\nContent-Type: application/json\r\n\r\n${JSON.stringify(json)}\r\n--graphql`;

  test('multipart/mixed with subscriptionSpec=1.0 sends each answer as a part whose end has been sent too', async () => {
    await retitle('One');
    const { response, read, close } = await ask(oneOutfit);
    expect(response.headers.get('content-type')).toBe(
      'multipart/mixed; boundary="graphql"; subscriptionSpec=1.0',
    );
    const first = `--graphql${part({ payload: answer('One') })}`;
    expect(await read(1)).toBe(first);
    await retitle('Two');
    expect(await read(2)).toBe(`${first}${part({ payload: answer('Two') })}`);
    await close();
  });

  test('ends a body properly behind what is wrong with a document, and an expired token', async () => {
    const wrong = await ask('subscription { nothing }');
    expect(await wrong.read(2)).toMatch(
      /^--graphql.*"payload":\{"errors":\[.*\}\r\n--graphql--\r\n$/s,
    );
    const expiring = await ask(oneOutfit, apollo, await signIn(1, 4));
    const text = await expiring.read(9);
    expect(text).toContain('{"payload":null,"errors":[{"message":"The token has expired');
    expect(text).toMatch(/\r\n--graphql--\r\n$/);
  });

  test.each([
    ['multipart/mixed; subscriptionSpec="1.0"', 'multipart/mixed'],
    [`${apollo};q=0.8, text/event-stream`, 'multipart/mixed'],
    ['multipart/mixed;subscriptionSpec=1.0;q=0.5, text/event-stream', 'text/event-stream'],
    // As urql asks.
    [
      'application/graphql-response+json, application/json, text/event-stream, multipart/mixed',
      'text/event-stream',
    ],
    ['multipart/mixed;subscriptionSpec=1.0;q=0, application/json', undefined],
    ['multipart/mixed;deferSpec=20220824, application/json', undefined],
    ['multipart/mixed', undefined],
    ['*/*', undefined],
  ])(
    'multipart/mixed with subscriptionSpec=1.0 is chosen for Accept: %s by its weight, and not for another specification',
    async (accept, type) => {
      const { response, read, close } = await ask(oneOutfit, accept);
      const text = type ? '' : await read(1);
      expect(response.headers.get('content-type')).toContain(type ?? 'application/json');
      for (const name of type ? [] : ['text/event-stream', 'subscriptionSpec=1.0']) {
        expect(text).toContain(name);
      }
      await close();
    },
  );
});
