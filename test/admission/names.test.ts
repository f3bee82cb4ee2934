// Names in the webhook's answer: users of the old service appear and change here.
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { useGateway } from '../support/gateway.ts';
import { sendJson, startWebhook } from '../support/http/webhook.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 6, users: 2 })]);

async function openWithWebhook() {
  const webhook = await startWebhook();
  onTestFinished(() => webhook.close());
  const environment = { AUTH_WEBHOOK_URL: webhook.url, AUTH_WEBHOOK_TTL: '1s' };
  const app = await buildApp(readConfig(environment), gateway.database);
  onTestFinished(() => app.close());
  let credential = 0;
  /** Signs in with a new credential, so that the webhook is asked. */
  const signIn = async (answer: object, query: string) => {
    webhook.answer = (response) => sendJson(response, 200, answer);
    credential += 1;
    const headers = { authorization: `Token ${credential}` };
    return (
      await app.inject({ method: 'POST', url: '/graphql', headers, payload: { query } })
    ).json();
  };
  return signIn;
}

const names = '{ viewer { user { username firstName lastName avatarKey } } }';
const stored = async (id: number) =>
  (
    await gateway.database.pool.query(
      'SELECT xmin::text, username, first_name, last_name, avatar_key FROM users WHERE id = $1',
      [id],
    )
  ).rows[0];

test('a user who signs up in the old service exists here at the first request, and may write', async () => {
  const signIn = await openWithWebhook();
  const answer = { id: 501, username: 'new-one', first_name: 'Ada', last_name: 'L.' };
  const like = `mutation { likeOutfit(id: "${Buffer.from('Outfit:1').toString('base64')}") { outfit { viewerHasLiked } } }`;
  expect(await signIn(answer, like)).toEqual({
    data: { likeOutfit: { outfit: { viewerHasLiked: true } } },
  });
  expect(await stored(501)).toMatchObject({
    username: 'new-one',
    first_name: 'Ada',
    avatar_key: '',
  });
});

test('a new name follows; what is missing or invalid stays, and what is equal writes nothing', async () => {
  const signIn = await openWithWebhook();
  const avatar_key = 'avatars/0f8fad5b-d9cb-469f-a165-70867728950e.png';
  await signIn({ id: 502, username: 'ann', first_name: 'Ann', avatar_key }, '{ __typename }');
  const before = await stored(502);
  await signIn(
    { id: 502, username: 'ann', avatar_key: 'https://elsewhere/x.png' },
    '{ __typename }',
  );
  for (const username of ['', 'a b', 'a\u0000', 7, undefined, 'x'.repeat(300)]) {
    await signIn({ id: 502, username }, '{ __typename }');
  }
  expect(await stored(502)).toEqual(before);
  const renamed = await signIn({ id: 502, username: 'anna', last_name: 'Z' }, names);
  expect(renamed.data.viewer.user).toEqual({
    username: 'anna',
    firstName: 'Ann',
    lastName: 'Z',
    avatarKey: avatar_key,
  });
});
