// What the webhook says of a user, apart from the id: names, which are stored here, and who is staff.
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { readConfig } from '../../src/config/config.ts';
import { buildObserved, outfitId, useGateway } from '../support/gateway.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { sendJson, startWebhook } from '../support/http/webhook.ts';

const rows = [...generateOutfits({ outfits: 6, users: 2 })];
const gateway = useGateway('PostgreSQL', rows);

async function open(environment: Record<string, string> = {}) {
  const webhook = await startWebhook();
  onTestFinished(() => webhook.close());
  const config = readConfig({ AUTH_WEBHOOK_URL: webhook.url, ...environment });
  const { app, log } = await buildObserved({ database: gateway.database, config });
  const ask = async (query: string, headers: Record<string, string>) =>
    (await postGraphql(app, { query }, headers)).json();
  let credential = 0;
  /** With a new credential, so that the webhook is asked. */
  const askAs = (user: object, query = '{ __typename }') => {
    webhook.answer = (response) => sendJson(response, 200, user);
    credential += 1;
    return ask(query, { authorization: `Token ${credential}` });
  };
  return { ask, askAs, text: log.text };
}

const stored = async (id: number) => {
  const { rows: found } = await gateway.database.pool.query(
    'SELECT xmin::text, username, first_name, last_name, avatar_key FROM users WHERE id = $1',
    [id],
  );
  return found[0];
};

test('a user who signs up in the old service exists here at the first request, and may write', async () => {
  const { askAs } = await open();
  const user = { id: 501, username: 'new.one+x@example.com', first_name: 'Ada', last_name: 'L.' };
  const like = `mutation { likeOutfit(id: "${outfitId(1)}") { outfit { viewerHasLiked } } }`;
  expect(await askAs(user, like)).toEqual({
    data: { likeOutfit: { outfit: { viewerHasLiked: true } } },
  });
  const { id: _id, ...names } = user;
  expect(await stored(501)).toMatchObject({ ...names, avatar_key: '' });
});

test('a new name follows; what is missing or invalid stays, and what is equal writes nothing', async () => {
  const { askAs } = await open();
  const avatarKey = 'avatars/0f8fad5b-d9cb-469f-a165-70867728950e.png';
  await askAs({ id: 502, username: 'ann', first_name: 'Ann', avatar_key: avatarKey });
  const before = await stored(502);
  await askAs({ id: 502, username: 'ann', avatar_key: 'https://elsewhere/x.png' });
  for (const username of ['', 'a\u0000', 7, undefined, 'x'.repeat(300)]) {
    await askAs({ id: 502, username });
  }
  expect(await stored(502)).toEqual(before);
  const names = '{ viewer { user { username firstName lastName avatarKey } } }';
  const user = { username: 'anna', firstName: 'Ann', lastName: 'Z', avatarKey };
  expect(await askAs({ id: 502, username: 'anna', last_name: 'Z' }, names)).toEqual({
    data: { viewer: { user } },
  });
});

test('staff change and delete the outfits of others, and the log says who did it', async () => {
  const { ask, askAs, text } = await open({
    AUTH_JWT_SECRET: secret,
    AUTH_STAFF_CLAIM: 'is_staff',
  });
  const [one, two] = rows.map(({ id }) => outfitId(id));
  const update = `mutation { updateOutfit(id: "${one}", input: { title: "By staff" }) { outfit { title } } }`;
  const remove = `mutation { deleteOutfit(id: "${two}") { deletedOutfitId } }`;
  for (const query of [update, remove]) {
    for (const { errors } of [
      await askAs({ id: 77, is_staff: 'true' }, query),
      await ask(query, await signIn(77)),
      await ask(query, await signIn(77, 3600, { is_staff: 'true' })),
    ]) {
      expect(errors[0].extensions.code).toMatch(/^(?:FORBIDDEN|NOT_FOUND)$/);
    }
  }
  expect(text()).not.toContain('Staff has');
  expect(await askAs({ id: 77, is_staff: true }, update)).toEqual({
    data: { updateOutfit: { outfit: { title: 'By staff' } } },
  });
  expect(await ask(remove, await signIn(77, 3600, { is_staff: true }))).toEqual({
    data: { deleteOutfit: { deletedOutfitId: two } },
  });
  expect(text()).toContain('Staff has changed an outfit.');
  expect(text()).toContain('Staff has deleted an outfit.');
});
