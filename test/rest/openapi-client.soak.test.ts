// A client with types that openapi-typescript makes of the OpenAPI document, against a gateway that listens.
// They work with TypeScript 5 alone, which is not that of this project: npm fetches all of it for a moment.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { openGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const packages = ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3'];

const source = `
import createClient from 'openapi-fetch';
import type { components, paths } from './openapi.js';

type Outfit = components['schemas']['OutfitRecord'];

export async function use(baseUrl: string, headers: Record<string, string>, image_key: string) {
  const client = createClient<paths>({ baseUrl });
  const readFrom = async (page: number): Promise<Outfit[]> => {
    const query = { ordering: 'like_count', page } as const;
    const { data } = await client.GET('/api/outfits/', { params: { query } });
    const next = data?.next && Number(new URL(data.next).searchParams.get('page'));
    return [...(data?.results ?? []), ...(next ? await readFrom(next) : [])];
  };
  const ids = (await readFrom(1)).map(({ id }) => id);
  const last = await client.GET('/api/outfits/', { params: { query: { page: 'last' } } });
  const body = { image_key, creation_device: 'ios', video: null } as const;
  const made = await client.POST('/api/outfits/', { body, headers });
  const form = await client.POST('/api/outfits/', {
    body: { image_key },
    headers: { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' },
    bodySerializer: ({ image_key }) => new URLSearchParams({ image_key }),
  });
  const { error } = await client.POST('/api/outfits/', { body });
  const refused = await Promise.all([
    // @ts-expect-error: there is no such ordering
    client.GET('/api/outfits/', { params: { query: { ordering: 'title' } } }),
    // @ts-expect-error: a page is a number, or the last one
    client.GET('/api/outfits/', { params: { query: { page: 'first' } } }),
    // @ts-expect-error: the image is required
    client.POST('/api/outfits/', { body: { title: 'No image' } }),
    // @ts-expect-error: there is no such method
    client.DELETE('/api/outfits/'),
  ]);
  return {
    ids,
    last: last.data?.results.length,
    made: [made.data?.creation_device, form.data?.creation_device],
    detail: error && 'detail' in error && error.detail,
    refused: refused.map(({ response }) => response.status),
  };
}
`;

test('a client that is generated reads and writes, and compiles only where the gateway agrees', async () => {
  const rows = [...generateOutfits({ outfits: 45, users: 9 })];
  const gateway = await openGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-client-'));
  const run = (...[command = '', ...args]: string[]) =>
    promisify(execFile)(command, args, { cwd: folder });
  try {
    const { body } = await gateway.get('/api/openapi.json');
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'openapi.json'), body);
    writeFileSync(join(folder, 'client.ts'), source);
    await run('npm', 'install', '--no-audit', '--no-fund', ...packages);
    await run('npx', 'openapi-typescript', 'openapi.json', '--output=openapi.d.ts');
    await run('npx', 'tsc', '--strict', '--module', 'nodenext', '--target', 'es2022', 'client.ts');
    const { use } = await import(join(folder, 'client.js'));

    await gateway.app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = gateway.app.server.address() as AddressInfo;
    const image = `outfits/${crypto.randomUUID()}.png`;
    const used = await use(`http://127.0.0.1:${port}`, await signIn(rows[0]?.userId), image);
    const byLikes = rows.toSorted((a, b) => a.likes - b.likes || a.id - b.id);
    expect(used).toEqual({
      ids: byLikes.map(({ id }) => id),
      last: 5,
      made: ['ios', 'web'],
      detail: 'Authentication credentials were not provided.',
      refused: [400, 404, 401, 405],
    });
  } finally {
    await gateway.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
