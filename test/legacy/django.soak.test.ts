// A real Django REST Framework: its listing, a session, a token, and JWTs in the form of simplejwt.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import * as importCommand from '../../src/commands/import.ts';
import * as verifyCommand from '../../src/commands/verify.ts';
import * as whoami from '../../src/commands/whoami.ts';
import { callCommand } from '../support/cli/commands.ts';
import { makeMigratedDatabase, openGateway, type TestGateway } from '../support/gateway.ts';
import { secret } from '../support/http/tokens.ts';
import { hasDjango, startDjango } from '../support/legacy/django.ts';

type Headers = Record<string, string>;
type Django = Awaited<ReturnType<typeof startDjango>>;

let django: Django;
beforeAll(async () => {
  if (hasDjango) django = await startDjango(secret);
});
afterAll(() => django?.close());

const settingsOf = ({ base }: Django) => ({
  AUTH_WEBHOOK_URL: `${base}/whoami/`,
  AUTH_COOKIES: 'sessionid',
  AUTH_WEBHOOK_TTL: '1s',
  AUTH_USER_CLAIM: 'user_id',
});

async function open(settings: Record<string, string>): Promise<TestGateway> {
  const gateway = await openGateway('PostgreSQL', [], {
    ...settingsOf(django),
    PUBLIC_URL: 'https://shop.test',
    ...settings,
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

const image = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

/** The status of a read, and of a write from a page of this origin. */
async function statusesOf({ app }: TestGateway, headers: Headers): Promise<[number, number]> {
  const url = '/api/outfits/';
  const read = await app.inject({ method: 'GET', url, headers });
  const write = await app.inject({
    method: 'POST',
    url,
    headers: { ...headers, origin: 'https://shop.test' },
    payload: { image_key: image },
  });
  if (write.statusCode === 201) owners.push(write.json().user.id);
  return [read.statusCode, write.statusCode];
}
const owners: number[] = [];

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
const token = (key: string): Headers => ({ authorization: `Token ${key}` });
const session = (key: string): Headers => ({ cookie: `csrftoken=x; sessionid=${key}` });

describe.skipIf(!hasDjango)('Django REST Framework', () => {
  test.each([
    ['by the webhook', {}],
    ['JWTs by the key', { AUTH_JWT_SECRET: secret }],
  ])(
    'who is signed in there is signed in here: %s',
    { timeout: 60_000 },
    async (_name, settings) => {
      const gateway = await open(settings);
      const { ann, bob } = django.users;
      for (const user of [ann, bob]) {
        for (const headers of [token(user.token), session(user.session), bearer(user.access)]) {
          const { status } = await fetch(`${django.base}/whoami/`, { headers });
          expect(status).toBe(200);
          // The user of the old service comes with the import; a write needs the row.
          await gateway.database.pool.query(
            `INSERT INTO users (id, username, first_name, last_name, avatar_key)
           VALUES ($1, $2, '', '', '') ON CONFLICT DO NOTHING`,
            [user.id, `user-${user.id}`],
          );
          owners.length = 0;
          expect(await statusesOf(gateway, headers)).toEqual([200, 201]);
          expect(owners).toEqual([user.id]);
        }
        for (const headers of [
          bearer(user.refresh),
          bearer(user.expired),
          bearer(`${user.access}x`),
          token(`${user.token}0`),
          token(user.session),
          { authorization: 'Basic eDp5' },
        ]) {
          const { status } = await fetch(`${django.base}/whoami/`, { headers });
          expect(status).toBe(403);
          expect(await statusesOf(gateway, headers)).toEqual([401, 401]);
        }
        // Anonymous in both services: a read is answered all the same.
        expect(
          (await fetch(`${django.base}/api/outfits/`, { headers: session('wrong') })).status,
        ).toBe(200);
        expect(await statusesOf(gateway, session('wrong'))).toEqual([200, 401]);
      }
    },
  );

  test('its listing is imported, and verified with the known differences only', async () => {
    const database = await makeMigratedDatabase('PostgreSQL');
    onTestFinished(() => database.remove());
    const url = `${django.base}/api/outfits/`;
    expect(await callCommand(importCommand, [url], database.environment)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^45 records read .*: 45 created, .* 0 broken\.\n$/),
    });
    const known = [
      ...['fraction', 'previous-page-1', 'unknown-ordering', 'several-orderings'],
      // Sessions make it `Accept, Cookie`.
      'header:vary',
    ];
    const args = [url, '--wait', '0', ...known.flatMap((kind) => ['--accept', kind])];
    const verified = await callCommand(verifyCommand, args, database.environment);
    expect(verified).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^45 records in 9 orders, \d+ answers compared: nothing differs but what was accepted\.$/m,
      ),
    });
  });

  test('the command says so of both sides', async () => {
    const { bob } = django.users;
    const call = (headers: Headers, settings = {}) =>
      callCommand(
        whoami,
        Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
        { ...settingsOf(django), LEGACY_URL: django.base, ...settings },
      );
    for (const headers of [token(bob.token), session(bob.session), bearer(bob.access)]) {
      expect(await call(headers)).toMatchObject({
        code: 0,
        stdout: `The old service: a user who may write\nThis gateway: user ${bob.id}\n`,
      });
    }
    expect(await call(bearer(bob.refresh))).toMatchObject({
      code: 0,
      stdout: 'The old service: refused (status 403)\nThis gateway: refused\n',
    });
    expect(await call(session('wrong'))).toMatchObject({
      code: 0,
      stdout: 'The old service: nobody\nThis gateway: nobody\n',
    });
    // Nothing tells a session from other cookies but its name.
    expect(await call(session(bob.session), { AUTH_COOKIES: 'other' })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(
        'This gateway: nobody: set AUTH_WEBHOOK_URL and AUTH_COOKIES',
      ),
    });
    const keyOnly = { AUTH_WEBHOOK_URL: '', AUTH_COOKIES: '', AUTH_JWT_SECRET: secret };
    expect(await call(token(bob.token), keyOnly)).toMatchObject({
      code: 1,
      stdout: 'The old service: a user who may write\nThis gateway: nobody: set AUTH_WEBHOOK_URL\n',
    });
    expect(await call(bearer(bob.access), { ...keyOnly, AUTH_USER_CLAIM: '' })).toMatchObject({
      code: 1,
      stdout: 'The old service: a user who may write\nThis gateway: refused: set AUTH_USER_CLAIM\n',
    });
    expect(
      await call(token(bob.token), { AUTH_WEBHOOK_URL: `${django.base}/whoami` }),
    ).toMatchObject({
      code: 2,
      stderr: 'This gateway cannot say (AUTH_WEBHOOK_URL was answered with status 301.).\n',
    });
    expect(await call(token(bob.token), { LEGACY_URL: 'http://127.0.0.1:9' })).toMatchObject({
      code: 2,
    });
  });

  test('what is revoked there is refused here within AUTH_WEBHOOK_TTL', {
    timeout: 60_000,
  }, async () => {
    const gateway = await open({});
    const { ann, bob } = django.users;
    const shown = [token(ann.token), session(ann.session), bearer(ann.access)];
    const read = (headers: Headers) => gateway.app.inject({ url: '/api/outfits/', headers });
    for (const headers of shown) expect((await read(headers)).statusCode).toBe(200);
    django.revoke();
    await sleep(1_100);
    expect((await read(shown[0] ?? {})).statusCode).toBe(401);
    expect(await statusesOf(gateway, shown[1] ?? {})).toEqual([200, 401]);
    expect((await read(shown[2] ?? {})).statusCode).toBe(401);
    expect((await read(token(bob.token))).statusCode).toBe(200);
    // The key alone does not know that she is inactive.
    const byKey = await open({ AUTH_JWT_SECRET: secret });
    const answer = await byKey.app.inject({ url: '/api/outfits/', headers: shown[2] ?? {} });
    expect(answer.statusCode).toBe(200);
  });
});
