// The embedded database with the demonstration set, as a process: made once, kept, and shown with its pictures.
import { describe, expect, test } from 'vitest';
import {
  baseOf,
  environmentOf,
  failure,
  findFreePort,
  listing,
  migratedEnvironmentOf,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { secret, signIn } from '../support/http/tokens.ts';

describe('the demonstration', () => {
  test('is filled on the first start, kept on later ones, and closed on SIGTERM', async () => {
    const environment = await environmentOf('embedded');
    const first = runServer(environment);
    const base = await baseOf(first);
    const { count, results } = await listing(base);
    expect(count).toBeGreaterThanOrEqual(2000);
    const log = first.output();
    expect(log).toContain(`embedded database in ${environment['DATA_DIR']}, ${count} outfits`);
    expect(log).toContain(`GraphiQL: ${base}/graphql"`);

    const lastUser = await fetch(`${base}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"query":"{ user(databaseId: 200) { username outfits { count } } }"}',
    });
    expect(await lastUser.json()).toMatchObject({
      data: { user: { outfits: { count: expect.any(Number) } } },
    });
    const page = await fetch(`${base}/graphql`, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).toContain('text/html');
    await page.arrayBuffer();

    // A second process harms nothing, and the first one goes on.
    const second = runServer(environment);
    expect(await failure(second)).toBe(
      `The embedded database in ${environment['DATA_DIR']} is in use by process ${first.child.pid}: stop that process, or set DATA_DIR to another folder.`,
    );
    expect(await listing(base)).toEqual({ ...(await listing(base)), count, results });

    expect(await stop(first)).toBe(0);
    const later = runServer(environment);
    const again = await listing(await baseOf(later));
    expect(again.count).toBe(count);
    expect(again.results.map(({ id }) => id)).toEqual(results.map(({ id }) => id));
    expect(later.output()).not.toContain('demonstration');
    expect(await stop(later)).toBe(0);
  });

  test('shows pictures of this process while MEDIA_URL is unset, and none when it is set', async () => {
    const environment = { ...(await migratedEnvironmentOf('embedded')), AUTH_JWT_SECRET: secret };
    const own = runServer(environment);
    const base = await baseOf(own);
    const [first] = await firstPage(base);
    const image = first?.image_key ?? '';
    expect(image).toMatch(`${base}/media/outfits/`);
    expect((await fetch(image)).headers.get('content-type')).toBe('image/svg+xml');

    // A page was perhaps reached by another name than the one in JSON, from a phone say.
    const asked = { headers: { accept: 'text/html' } };
    for (const path of ['/', '/api/outfits/']) {
      const page = await (await fetch(base + path, asked)).text();
      const shown = [...page.matchAll(/<img src="([^"]+)"/g)].map(([, source]) => source);
      expect(shown.length).toBeGreaterThan(5);
      for (const source of shown) expect(source).toMatch(/^\/media\/(?:outfits|avatars)\//);
    }

    // What was read can be written.
    const headers = await signIn(1);
    const body = new URLSearchParams({ image_key: image });
    const created = await fetch(`${base}/api/outfits/`, { method: 'POST', headers, body });
    expect(created.status).toBe(201);
    expect(await created.json()).toMatchObject({ image_key: image, image_original_url: image });
    expect(await stop(own)).toBe(0);

    const PORT = String(await findFreePort());
    const named = runServer({ ...environment, PORT, PUBLIC_URL: 'https://shop.test/app' });
    await named.until(/GraphiQL: /);
    const [shown] = await firstPage(`http://localhost:${PORT}`);
    expect(shown?.image_key).toBe(image.replace(base, 'https://shop.test/app'));
    expect(await stop(named)).toBe(0);

    const elsewhere = runServer({ ...environment, MEDIA_URL: 'https://media.example.com' });
    const otherBase = await baseOf(elsewhere);
    const [again] = await firstPage(otherBase);
    expect(again?.image_key).toBe(image.replace(`${base}/media`, 'https://media.example.com'));
    const path = new URL(image).pathname;
    expect((await fetch(otherBase + path)).status).toBe(404);
    expect((await fetch(otherBase + path, { method: 'POST' })).status).toBe(404);
    expect(await stop(elsewhere)).toBe(0);
  });
});

interface Listing {
  readonly results: { readonly image_key: string; readonly user: { avatar_key: string } }[];
}

async function firstPage(base: string): Promise<Listing['results']> {
  const { results } = (await (await fetch(`${base}/api/outfits/`)).json()) as Listing;
  return results;
}
