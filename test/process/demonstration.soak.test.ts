// The embedded database with the demonstration set, as a process: made once, kept, and shown with its pictures.
import { expect, test } from 'vitest';
import { baseOf, environmentOf, failure, runServer, stop } from '../support/cli/process.ts';
import { findFreePort } from '../support/http/free-port.js';
import { secret, signIn } from '../support/http/tokens.ts';

interface Listing {
  readonly count: number;
  readonly results: readonly { readonly id: number; readonly image_key: string }[];
}

const listing = async (base: string): Promise<Listing> =>
  (await fetch(`${base}/api/outfits/`)).json() as Promise<Listing>;

test('the demonstration is filled on the first start, kept on later ones, and shows its pictures unless MEDIA_URL is set', async () => {
  const data = await environmentOf('embedded');
  const environment = { ...data, AUTH_JWT_SECRET: secret };
  const first = runServer(environment);
  const base = await baseOf(first);
  const { count, results } = await listing(base);
  expect(count).toBeGreaterThanOrEqual(2000);
  expect(first.output()).toContain(`embedded database in ${data['DATA_DIR']}, ${count} outfits`);
  expect(first.output()).toContain(`GraphiQL: ${base}/graphql"`);
  const image = results[0]?.image_key ?? '';
  expect(image).toMatch(`${base}/media/outfits/`);
  expect((await fetch(image)).headers.get('content-type')).toBe('image/svg+xml');

  // A page was perhaps reached by another name than the one in JSON, from a phone say.
  for (const path of ['/', '/outfits/']) {
    const page = await (await fetch(base + path, { headers: { accept: 'text/html' } })).text();
    const shown = [...page.matchAll(/<img src="([^"]+)"/g)].map(([, source]) => source);
    expect(shown.length).toBeGreaterThan(5);
    for (const source of shown) expect(source).toMatch(/^\/media\/(?:outfits|avatars)\//);
  }

  // A second process harms nothing, and the first one goes on.
  expect(await failure(runServer(environment))).toBe(
    `The embedded database in ${data['DATA_DIR']} is in use by process ${first.child.pid}: stop that process, or set DATA_DIR to another folder.`,
  );
  expect(await listing(base)).toMatchObject({ count, results });

  // What was read can be written.
  const headers = await signIn(1);
  const body = new URLSearchParams({ image_key: image });
  const created = await fetch(`${base}/api/outfits/`, { method: 'POST', headers, body });
  expect(created.status).toBe(201);
  const record = (await created.json()) as Listing['results'][number];
  expect(record).toMatchObject({ image_key: image, image_original_url: image });
  expect(await stop(first)).toBe(0);

  const PORT = String(await findFreePort());
  const later = runServer({ ...environment, PORT, PUBLIC_URL: 'https://shop.test/app' });
  await later.until(/GraphiQL: /);
  const again = await listing(`http://localhost:${PORT}`);
  expect(again.count).toBe(count + 1);
  expect(again.results.map(({ id }) => id)).toEqual(
    [record, ...results].slice(0, 20).map(({ id }) => id),
  );
  expect(again.results[0]?.image_key).toBe(image.replace(base, 'https://shop.test/app'));
  expect(later.output()).not.toContain('demonstration');
  expect(await stop(later)).toBe(0);

  const elsewhere = runServer({ ...environment, MEDIA_URL: 'https://media.example.com' });
  const otherBase = await baseOf(elsewhere);
  const [shown] = (await listing(otherBase)).results;
  expect(shown?.image_key).toBe(image.replace(`${base}/media`, 'https://media.example.com'));
  const url = otherBase + new URL(image).pathname;
  expect((await fetch(url)).status).toBe(404);
  expect((await fetch(url, { method: 'POST' })).status).toBe(404);
  expect(await stop(elsewhere)).toBe(0);
});
