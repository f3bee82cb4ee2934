// The road of docs/attach.md with Django REST Framework and its PostgreSQL: attached one way, both ways, and detached, while
// people write. Each write is seen here by the next read.
import { expect, onTestFinished, test } from 'vitest';
import * as attachCommand from '../../src/commands/attach.ts';
import * as detachCommand from '../../src/commands/detach.ts';
import * as migrateCommand from '../../src/commands/migrate.ts';
import { callCommand } from '../support/cli/commands.ts';
import { baseOf, runServer } from '../support/cli/process.ts';
import { makeEmptyDatabase } from '../support/gateway.ts';
import { secret } from '../support/http/tokens.ts';
import { hasDjango, hasPsycopg, startDjango } from '../support/legacy/django.ts';
import { fileOf } from '../support/legacy/old-tables.ts';

const media = 'https://media.example.com/';
const mapping = {
  users: {
    select: "SELECT id, username, first_name, last_name, '' AS avatar_key FROM public.auth_user",
    changes: { 'public.auth_user': 'id' },
  },
  outfits: {
    select: [
      `SELECT id, title, description, replace(image_key, '${media}', '') AS image_key, complete, likes, user_id, quality, private,`,
      '  created, modified, creation_device, modification_device FROM public.app_outfit',
    ],
    changes: { 'public.app_outfit': 'id' },
  },
};
const time = (name: string) => `'epoch'::timestamptz + o.${name} * interval '1 microsecond'`;
const same = ['title', 'description', 'complete', 'quality', 'private', 'user_id'];
const image = `'${media}' || o.image_key`;
const write = {
  tables: {
    'public.app_outfit': {
      id: 'id',
      columns: {
        ...Object.fromEntries(same.map((name) => [name, `o.${name}`])),
        image_key: image,
        image_original_url: image,
        created: time('created'),
        modified: time('modified'),
      },
      insert: {
        likes: '0',
        background_color: "''",
        play_video: 'false',
        creation_device: "'web'",
        modification_device: "''",
      },
    },
  },
  like: 'UPDATE public.app_outfit SET likes = likes + 1 WHERE id = l.outfit_id',
  unlike: 'UPDATE public.app_outfit SET likes = likes - 1 WHERE id = l.outfit_id',
};

const key = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

test.skipIf(!hasDjango || !hasPsycopg)(
  'attached, Django and the gateway serve the same while people write at either',
  async () => {
    const made = await makeEmptyDatabase('PostgreSQL');
    onTestFinished(() => made.remove());
    const url = made.environment['DATABASE_URL'] ?? '';
    const django = await startDjango(secret, url);
    onTestFinished(() => django.close());
    const environment = { DATABASE_URL: `${url}?schema=outfits` };
    const headers = {
      authorization: `Token ${django.users.ann.token}`,
      'content-type': 'application/json',
    };
    const ask = async (base: string, method: string, id?: number, body?: object) => {
      const address = `${base}/api/outfits/${id === undefined ? '' : `${id}/`}`;
      const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
      const response = await fetch(address, init);
      const text = await response.text();
      return { status: response.status, record: text === '' ? undefined : JSON.parse(text) };
    };
    let gateway: string | undefined;
    let isOver = false;
    let writes = 0;
    /** Creates, edits and deletes at Django for as long as the test runs. */
    const traffic = async (who: number) => {
      for (let n = 0; !isOver; n++) {
        const title = `by ${who}, ${n}`;
        const now = new Date().toISOString();
        const content = { title, image_key: media + key, image_original_url: media + key };
        const created = await ask(django.base, 'POST', undefined, {
          ...content,
          created: now,
          modified: now,
        });
        expect(created.status).toBe(201);
        const { id } = created.record;
        for (const edit of [{ title: `${title} edited` }, { likes: n }]) {
          expect((await ask(django.base, 'PATCH', id, edit)).status).toBe(200);
          if (!gateway) continue;
          expect(await ask(gateway, 'GET', id)).toMatchObject({ status: 200, record: edit });
        }
        writes++;
        if (n % 3 > 0) continue;
        expect((await ask(django.base, 'DELETE', id)).status).toBe(204);
        if (gateway) expect((await ask(gateway, 'GET', id)).status).toBe(404);
      }
    };
    const running = Promise.all([traffic(1), traffic(2), traffic(3)]);
    // It is awaited at the end.
    running.catch(() => {});
    onTestFinished(() => {
      isOver = true;
    });
    const call = (command: typeof attachCommand, ...args: string[]) =>
      callCommand(command, args, environment);
    expect(await call(migrateCommand as never)).toMatchObject({ code: 0 });
    const equal = { code: 0, stdout: expect.stringMatching(/Both sides are equal\.\n$/) };
    expect(await call(attachCommand, fileOf(mapping))).toMatchObject(equal);
    const server = runServer({
      ...environment,
      AUTH_WEBHOOK_URL: `${django.base}/whoami/`,
      MEDIA_URL: media.slice(0, -1),
    });
    gateway = await baseOf(server);
    const later = writes + 10;
    await expect.poll(() => writes, { timeout: 30_000 }).toBeGreaterThan(later);
    const post = () =>
      ask(gateway ?? '', 'POST', undefined, { title: 'made here', image_key: key });
    expect(await post()).toMatchObject({ status: 403 });

    expect(await call(attachCommand, fileOf({ ...mapping, write }))).toMatchObject(equal);
    await expect.poll(async () => (await post()).status, { timeout: 15_000 }).toBe(201);
    for (let n = 0; n < 10; n++) {
      const { record } = await post();
      expect(await ask(django.base, 'GET', record.id)).toMatchObject({
        status: 200,
        record: { title: 'made here', image_key: media + key, user: { username: 'ann' }, likes: 0 },
      });
    }
    isOver = true;
    await running;
    expect(await call(attachCommand, 'check')).toMatchObject(equal);
    expect(await call(detachCommand as never)).toMatchObject({ code: 0 });
    expect((await post()).status).toBe(201);
  },
  120_000,
);
