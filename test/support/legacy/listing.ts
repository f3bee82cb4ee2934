// The old service as an import meets it, and records for it.
import { onTestFinished } from 'vitest';
import {
  type LegacyRecord,
  type LegacyService,
  makeRecords,
  startLegacyService,
} from './legacy-service.ts';

/** Records in the default order. */
export const newest = (count: number) => makeRecords(count).reverse();

export const toLines = (records: readonly unknown[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

/** A listing of these, in this order; its links name another host, as behind a proxy. */
export async function serveListing(records: LegacyRecord[]): Promise<LegacyService> {
  const origin = 'http://behind-a-proxy.internal';
  const service = await startLegacyService(records, { pageSize: 10, isSorted: false, origin });
  onTestFinished(() => service.close());
  return service;
}
