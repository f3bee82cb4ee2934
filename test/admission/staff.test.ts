// AUTH_STAFF_CLAIM and the webhook's is_staff: staff change and delete the outfits of others.
import { SignJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { keepLog, outfitId, useGateway } from '../support/gateway.ts';
import { secret } from '../support/http/tokens.ts';
import { sendJson, startWebhook } from '../support/http/webhook.ts';

const rows = [...generateOutfits({ outfits: 6, users: 2 })];
const gateway = useGateway('PostgreSQL', rows);

const bearer = async (claims: Record<string, unknown>) => {
  const token = new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime('1 hour');
  return `Bearer ${await token.sign(new TextEncoder().encode(secret))}`;
};

test('staff change and delete the outfits of others, and the log says who did it', async () => {
  const webhook = await startWebhook();
  onTestFinished(() => webhook.close());
  webhook.answer = (response, { headers }) =>
    sendJson(response, 200, { id: 77, is_staff: headers.authorization === 'Token staff' });
  const { logger, text } = keepLog();
  const environment = {
    AUTH_JWT_SECRET: secret,
    AUTH_STAFF_CLAIM: 'is_staff',
    AUTH_WEBHOOK_URL: webhook.url,
  };
  const app = await buildApp(readConfig(environment), gateway.database, { logger });
  onTestFinished(() => app.close());
  const ask = async (authorization: string, query: string) =>
    (
      await app.inject({
        method: 'POST',
        url: '/graphql',
        headers: { authorization },
        payload: { query },
      })
    ).json();
  const [one, two] = rows.map(({ id }) => id) as [number, number];
  const update = (id: number) =>
    `mutation { updateOutfit(id: "${outfitId(id)}", input: { title: "By staff" }) { outfit { title } } }`;
  const remove = (id: number) =>
    `mutation { deleteOutfit(id: "${outfitId(id)}") { deletedOutfitId } }`;
  for (const other of [
    'Token user',
    await bearer({ sub: '77' }),
    await bearer({ sub: '77', is_staff: 'true' }),
  ]) {
    for (const query of [update(one), remove(two)]) {
      const { errors } = await ask(other, query);
      expect(errors[0].extensions.code).toMatch(/^(?:FORBIDDEN|NOT_FOUND)$/);
    }
  }
  expect(text()).not.toContain('Staff has');
  const changed = await ask('Token staff', update(one));
  expect(changed).toEqual({ data: { updateOutfit: { outfit: { title: 'By staff' } } } });
  const removed = await ask(await bearer({ sub: '77', is_staff: true }), remove(two));
  expect(removed).toEqual({ data: { deleteOutfit: { deletedOutfitId: outfitId(two) } } });
  const logged = text();
  expect(logged).toContain('Staff has changed an outfit.');
  expect(logged).toContain('Staff has deleted an outfit.');
});
