// Who calls what, of several workers together.
import { other } from '../observability/bounded-names.ts';
import { maxNames } from '../observability/clients.ts';
import {
  meanOfDays,
  recentDays,
  sortUsage,
  type UsageReport,
  type UsageRow,
} from '../observability/usage.ts';

/** As one process would tell it: with as many names, those that ask most. */
export function combineUsage(since: Date, reports: readonly UsageReport[]): UsageReport {
  const all = reports.flatMap(({ usage }) => usage);
  const clients = merge(
    all.filter(({ client }) => client !== other),
    ({ client }) => client,
    addRows,
  );
  const most = clients.sort((a, b) => b.requests - a.requests).slice(0, maxNames);
  const names = new Set(most.map(({ client }) => client));
  const rows = merge(
    all.map((row) => (names.has(row.client) ? row : { ...row, client: other, version: other })),
    ({ client, version, interface: kind, route }) => JSON.stringify([client, version, kind, route]),
    addRows,
  );
  return {
    since,
    namesForgotten: reports.reduce((sum, { namesForgotten }) => sum + namesForgotten, 0),
    usage: sortUsage(rows.map(forget)),
  };
}

/** Leaves out the days that are long ago: a worker that has ended goes on telling them. */
function forget(row: UsageRow): UsageRow {
  const now = Date.now();
  const days = recentDays(row.days, now);
  return { ...row, days, requestsADay: meanOfDays(days, row.firstSeen, now) };
}

/** One for each key, with the others of that key added to it. */
function merge<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  add: (a: Item, b: Item) => Item,
): Item[] {
  const merged = new Map<string, Item>();
  for (const item of items) {
    const before = merged.get(keyOf(item));
    merged.set(keyOf(item), before ? add(before, item) : item);
  }
  return [...merged.values()];
}

function addRows(a: UsageRow, b: UsageRow): UsageRow {
  const parameters = merge(
    [...a.parameters, ...b.parameters],
    ({ name }) => name,
    (x, y) => ({ ...y, requests: x.requests + y.requests }),
  );
  return {
    ...a,
    requests: a.requests + b.requests,
    statuses: addNumbers(a.statuses, b.statuses),
    parameters: parameters.sort((x, y) => y.requests - x.requests),
    firstSeen: a.firstSeen < b.firstSeen ? a.firstSeen : b.firstSeen,
    lastSeen: a.lastSeen > b.lastSeen ? a.lastSeen : b.lastSeen,
    days: addNumbers(a.days, b.days),
  };
}

function addNumbers<Numbers extends Readonly<Record<string, number>>>(a: Numbers, b: Numbers) {
  const sum: Record<string, number> = { ...a };
  for (const [name, number] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + number;
  return sum as Numbers;
}
