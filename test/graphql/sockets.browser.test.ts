// Live answers in a browser over HTTP/1.1: six connections for a host are all it has, and one of them suffices.
import { createRequire } from 'node:module';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { openPage } from '../support/browser/browser.ts';
import { signIn } from '../support/http/tokens.ts';

test('ten subscriptions, a mutation and a fetch share one WebSocket and one connection', async () => {
  // JSON, without the policy of pages that would keep the script out; its icon is missing.
  const page = await openPage('/health/live', { mayGet: 404 });
  const sockets: string[] = [];
  page.on('websocket', (socket) => sockets.push(socket.url()));
  const { outputFiles } = await build({
    stdin: { contents: `export * from 'graphql-ws'`, resolveDir: import.meta.dirname },
    ...{ bundle: true, write: false, format: 'iife', globalName: 'graphqlWs' },
    alias: { 'graphql-ws': createRequire(import.meta.url).resolve('graphql-ws') },
  });
  await page.evaluate(outputFiles[0]?.text ?? expect.fail());
  await page.evaluate(`
    window.answers = Array.from({ length: 10 }, () => []);
    window.client = graphqlWs.createClient({
      url: location.origin.replace('http', 'ws') + '/graphql',
      connectionParams: ${JSON.stringify(await signIn(1))},
    });
    const fields = 'id likes viewerHasLiked';
    const next = (list) => ({ next: ({ data }) => list.push(data.outfit), error() {}, complete() {} });
    window.answers.forEach((list, at) => client.subscribe({
      query: 'subscription { outfit(databaseId: ' + (at + 1) + ') { ' + fields + ' } }',
    }, next(list)));
  `);
  const answers = () =>
    page.evaluate<{ id: string; likes: number; viewerHasLiked: boolean }[][]>('answers');
  const counts = async () => (await answers()).map(({ length }) => length);
  await expect.poll(counts).toEqual(Array(10).fill(1));
  const status = await page.evaluate(
    `fetch('/graphql?query={__typename}').then(({ status }) => status)`,
  );
  expect(status).toBe(200);
  const before = (await answers())[4]?.[0] ?? expect.fail();
  const like = before.viewerHasLiked ? 'unlikeOutfit' : 'likeOutfit';
  const undo = before.viewerHasLiked ? 'likeOutfit' : 'unlikeOutfit';
  for (const [mutation, length] of [
    [like, 2],
    [undo, 3],
  ] as const) {
    await page.evaluate(`new Promise((resolve, error) => client.subscribe(
      { query: 'mutation { ${mutation}(id: "${before.id}") { outfit { likes } } }' },
      { next() {}, error, complete: resolve },
    ))`);
    await expect.poll(async () => (await answers())[4]?.length).toBe(length);
  }
  expect((await answers())[4]?.at(-1)).toEqual(before);
  expect(await counts()).toEqual([1, 1, 1, 1, 3, 1, 1, 1, 1, 1]);
  expect(sockets).toHaveLength(1);
});
