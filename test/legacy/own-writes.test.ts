// What is written in the old service through this gateway is seen here by the time its writer is answered.
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { keepLog } from '../support/gateway.ts';
import {
  type LegacyService,
  makeRecord,
  startLegacyService,
} from '../support/legacy/legacy-service.ts';
import { type ListeningGateway, openBefore, records } from '../support/legacy/two-services.ts';

let legacy: LegacyService;

beforeEach(async () => {
  legacy = await startLegacyService(records());
  legacy.hasDetails = true;
});
afterEach(() => legacy.close());

async function open(options = {}): Promise<ListeningGateway> {
  const settings = { LEGACY_MODE: 'canary:100', LEGACY_SAMPLE: '0' };
  const gateway = await openBefore('PostgreSQL', legacy.base, settings, options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const type = { 'content-type': 'application/json', authorization: 'Token abc' };
const write = (
  { base }: ListeningGateway,
  method: string,
  path: string,
  sent?: object,
  headers: Record<string, string> = {},
) =>
  fetch(`${base}/api/outfits/${path}`, {
    method,
    headers: { ...type, ...headers },
    ...(sent ? { body: JSON.stringify(sent) } : {}),
  });

/** What this gateway has, without a credential: one that it cannot verify goes to the old service. */
async function read({ base }: ListeningGateway, id: number) {
  const response = await fetch(`${base}/api/outfits/${id}/`);
  expect(response.headers.get('x-served-by')).toBe('gateway');
  return response.status === 200 ? ((await response.json()) as Record<string, unknown>) : undefined;
}

describe('a write that the old service has taken', () => {
  test('a write that the old service has taken is seen here at once: a creation, a change, a like, a deletion', async () => {
    const gateway = await open();
    const created = await write(gateway, 'POST', '', { title: 'New' });
    const { id, likes } = (await created.json()) as { id: number; likes: number };
    expect(created.status).toBe(201);
    expect(await read(gateway, id)).toMatchObject({ id, title: 'New' });
    const changed = await write(gateway, 'PATCH', `${id}/`, { title: 'Newer', private: true });
    expect(await changed.json()).toMatchObject({ title: 'Newer' });
    expect(await read(gateway, id)).toMatchObject({ title: 'Newer', private: true });
    await write(gateway, 'POST', `${id}/like/`);
    expect(await read(gateway, id)).toMatchObject({ likes: likes + 1 });
    expect((await write(gateway, 'DELETE', `${id}/like/`)).status).toBe(204);
    expect(await read(gateway, id)).toMatchObject({ likes });
    expect((await write(gateway, 'DELETE', `${id}/`)).status).toBe(204);
    expect(await read(gateway, id)).toBeUndefined();
  });

  test('a deletion is seen here at once where what was deleted is a 410', async () => {
    const gateway = await open();
    expect(await read(gateway, 7)).toMatchObject({ id: 7 });
    legacy.intercept = ({ method, url }) =>
      method === 'GET' && url.pathname === '/api/outfits/7/' ? [410, {}, {}] : undefined;
    expect((await write(gateway, 'DELETE', '7/')).status).toBe(204);
    expect(await read(gateway, 7)).toBeUndefined();
  });

  test('a write that the old service has taken is read with the credential of its writer, and without what describes its body', async () => {
    const gateway = await open();
    const headers = {
      'x-app': 'shop',
      cookie: 'sessionid=a',
      'idempotency-key': 'k',
      range: 'bytes=0-1',
    };
    await write(gateway, 'PATCH', '7/', { title: 'New' }, headers);
    const { method, target, headers: sent } = legacy.requests.at(-1) ?? {};
    expect([method, target]).toEqual(['GET', '/api/outfits/7/']);
    expect(sent).toMatchObject({
      authorization: 'Token abc',
      cookie: 'sessionid=a',
      'x-app': 'shop',
    });
    expect(Object.keys(sent ?? {})).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(?:content-.*|idempotency-key|range)$/)]),
    );
  });

  test('is taken from the answer where single records have no path, and the answer stays whole', async () => {
    const gateway = await open();
    legacy.hasDetails = false;
    for (const fault of [undefined, 'gzip'] as const) {
      legacy.fault = fault;
      const description = 'long '.repeat(2_000);
      const created = await write(gateway, 'POST', '', { title: 'Alone', description });
      const record = (await created.json()) as { id: number };
      expect(record).toMatchObject({ title: 'Alone', description });
      expect(await read(gateway, record.id)).toMatchObject({ title: 'Alone', description });
    }
  });

  test('a write that the old service has taken changes nothing here when its record is a 404 then, unless it was a deletion', async () => {
    const gateway = await open();
    legacy.onRead = (id) => {
      legacy.records.splice(
        legacy.records.findIndex((record) => record.id === id),
        1,
      );
    };
    await write(gateway, 'PATCH', '7/', { title: 'Once' });
    legacy.onRead = () => {};
    expect((await write(gateway, 'POST', '7/like/')).status).toBe(404);
    expect(await read(gateway, 7)).toMatchObject({ title: 'Once' });
  });

  test('a write that the old service has taken is never replaced by what was read before it', async () => {
    const gateway = await open();
    let reads = 0;
    legacy.onRead = async () => {
      // The first read has its record, and arrives when the second write is answered.
      reads += 1;
      if (reads === 1) await (await write(gateway, 'PATCH', '7/', { title: 'Second' })).text();
    };
    await write(gateway, 'PATCH', '7/', { title: 'First' });
    expect(reads).toBe(3);
    expect(await read(gateway, 7)).toMatchObject({ title: 'Second' });
  });

  test('an outfit that is deleted while another write of it is read stays deleted', async () => {
    const gateway = await open();
    let deleted: number | undefined;
    legacy.onRead = async () => {
      // The first read has its record.
      legacy.onRead = () => {};
      deleted = (await write(gateway, 'DELETE', '7/')).status;
    };
    await write(gateway, 'PATCH', '7/', { title: 'Late' });
    expect(deleted).toBe(204);
    expect(await read(gateway, 7)).toBeUndefined();
  });

  test('a write that the old service has taken is answered though it cannot be read, or is not a record of the contract', async () => {
    const log = keepLog();
    const gateway = await open({ logger: log.logger });
    legacy.onRead = () => {
      legacy.fault = 'cut short';
    };
    expect((await write(gateway, 'PATCH', '7/', { title: 'New' })).status).toBe(200);
    expect(log.text()).toContain('a write in the old service could not be followed');
    legacy.fault = undefined;
    legacy.onRead = () => {};
    expect((await write(gateway, 'PATCH', '7/', { likes: 'many' })).status).toBe(200);
    expect(await read(gateway, 7)).toMatchObject({ title: makeRecord(7).title });
  });

  test('a write that the old service has taken is not followed when the old service refuses it', async () => {
    const gateway = await open();
    legacy.requests.length = 0;
    expect((await write(gateway, 'PATCH', '99999/', {})).status).toBe(404);
    expect(legacy.requests).toHaveLength(1);
  });
});
