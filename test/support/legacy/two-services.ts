// Gateways in front of an old service, with the same records on both sides.
import type { AddressInfo } from 'node:net';
import type { AppOptions } from '../../../src/app.ts';
import { Metrics } from '../../../src/observability/metrics.ts';
import type { OutfitRow } from '../../../src/outfits/row.ts';
import { createCheck } from '../../../src/transfer/source/record.ts';
import { type DatabaseKind, openGateway, type TestGateway } from '../gateway.ts';
import { type LegacyRecord, makeRecords } from './legacy-service.ts';

/** None without microseconds: those are a decided difference. */
export const records = (count = 45): LegacyRecord[] =>
  makeRecords(count).filter(({ id }) => id % 10 !== 0);

const check = createCheck({
  media: 'https://media.example.com',
  video: 'https://video.example.com',
});

export function rowsOf(listed: readonly LegacyRecord[]): OutfitRow[] {
  return listed.map((record) => {
    const checked = check(record);
    if (!('row' in checked)) throw new Error(JSON.stringify(checked));
    return checked.row;
  });
}

/** Metrics that a test reads itself: without those of a database, which the gateway opens only later. */
export function makeMetrics(): Metrics {
  const pool = { totalCount: 0, idleCount: 0, lanes: {}, timedOut: 0 };
  return new Metrics({ pool, snapshots: { observe: () => {} } } as never);
}

export interface ListeningGateway extends TestGateway {
  readonly base: string;
}

/** A gateway that listens, with the records of an old service. */
export async function openBefore(
  kind: DatabaseKind,
  legacyUrl: string,
  settings: Record<string, string>,
  options: AppOptions = {},
  port = 0,
): Promise<ListeningGateway> {
  const environment = { LEGACY_URL: legacyUrl, ...settings };
  const gateway = await openGateway(kind, rowsOf(records()), environment, options);
  await gateway.app.listen({ port, host: '127.0.0.1' });
  const { port: taken } = gateway.app.server.address() as AddressInfo;
  return { ...gateway, base: `http://127.0.0.1:${taken}` };
}
