// A real Django REST Framework: its listing, a session, a token, and JWTs in the form of simplejwt.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import * as check from '../../src/commands/check.ts';
import * as importCommand from '../../src/commands/import.ts';
import * as verifyCommand from '../../src/commands/verify.ts';
import { callCommand } from '../support/cli/commands.ts';
import { makeMigratedDatabase, openForTest, type TestGateway } from '../support/gateway.ts';
import { secret } from '../support/http/tokens.ts';
import { hasDjango, startDjango } from '../support/legacy/django.ts';
import { accept, decided } from '../support/legacy/reports.ts';

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
  AUTH_USER_CLAIM: 'user_id',
});

const open = (settings: Record<string, string>) =>
  openForTest('PostgreSQL', [], {
    ...settingsOf(django),
    PUBLIC_URL: 'https://shop.test',
    ...settings,
  });

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
  ])('who is signed in there is signed in here: %s', async (_name, settings) => {
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
  });

  test('its listing is imported, and verified with the known differences only', async () => {
    const database = await makeMigratedDatabase('PostgreSQL');
    onTestFinished(() => database.remove());
    const url = `${django.base}/api/outfits/`;
    const imported = await callCommand(importCommand, [url], database.environment);
    expect(imported.stdout).toMatch(/^45 records read .*: 45 created, .* 0 broken\.\n$/);
    // Sessions make it `Accept, Cookie`.
    // A wrong credential is a 403 of Django, where no way of authentication asks for one, and a 401 here.
    // Its records can be written over HTTP, too.
    const known = ['header:vary', 'header:allow', 'status'];
    const args = [url, '--wait', '0', ...accept(...decided, ...known)];
    const verified = await callCommand(verifyCommand, args, database.environment);
    expect(verified.code).toBe(0);
    expect(verified.stdout).toMatch(
      /^45 records in 9 orders, \d+ answers compared: nothing differs but what was accepted\.$/m,
    );
  });

  test('the command says so of both sides', async () => {
    const { bob } = django.users;
    const call = async (headers: Headers, settings = {}) => {
      const given = Object.entries(headers).map(([name, value]) => `--header=${name}: ${value}`);
      const environment = { ...settingsOf(django), LEGACY_URL: django.base, ...settings };
      const { code, stdout } = await callCommand(check, given, environment);
      return [code, stdout.split('\n').find((line) => line.includes('--header'))];
    };
    const sides = (theirs: string, ours: string, result = 'ok') =>
      `${result}: --header: the old service: ${theirs}; this gateway: ${ours}`;
    const signedIn = 'a user who may write';
    for (const headers of [token(bob.token), session(bob.session), bearer(bob.access)]) {
      expect(await call(headers)).toEqual([0, sides(signedIn, `user ${bob.id}`)]);
    }
    const refused = sides('refused (status 403)', 'refused');
    expect(await call(bearer(bob.refresh))).toEqual([0, refused]);
    expect(await call(session('wrong'))).toEqual([0, sides('anonymous', 'anonymous')]);
    // Nothing tells a session from other cookies but its name.
    const unnamed = expect.stringContaining('anonymous (set AUTH_WEBHOOK_URL and AUTH_COOKIES)');
    expect(await call(session(bob.session), { AUTH_COOKIES: 'other' })).toEqual([1, unnamed]);
    const keyOnly = { AUTH_WEBHOOK_URL: '', AUTH_COOKIES: '', AUTH_JWT_SECRET: secret };
    const unasked = sides(signedIn, 'anonymous (set AUTH_WEBHOOK_URL)', 'wrong');
    expect(await call(token(bob.token), keyOnly)).toEqual([1, unasked]);
    const unclaimed = sides(signedIn, 'refused (set AUTH_USER_CLAIM)', 'wrong');
    const noClaim = { ...keyOnly, AUTH_USER_CLAIM: '' };
    expect(await call(bearer(bob.access), noClaim)).toEqual([1, unclaimed]);
    const redirected = { AUTH_WEBHOOK_URL: `${django.base}/whoami` };
    expect(await call(token(bob.token), redirected)).toEqual([
      1,
      'wrong: --header: this gateway cannot say (AUTH_WEBHOOK_URL was answered with status 301.)',
    ]);
    const [code] = await call(token(bob.token), { LEGACY_URL: 'http://127.0.0.1:9' });
    expect(code).toBe(1);
  });
});
