// Who calls what, of several workers together.
import { other } from '../observability/bounded-names.ts';
import { maxNames } from '../observability/clients.ts';
import {
  meanOfDays,
  recentDays,
  sortUsage,
  type UsageReport,
  type UsageRow,
  type UsedParameter,
} from '../observability/usage.ts';

/** As one process would tell it: with as many names, those that ask most. */
export function combineUsage(since: Date, reports: readonly UsageReport[]): UsageReport {
  const all = reports.flatMap(({ usage }) => usage);
  const names = findNames(all);
  const rows = new Map<string, UsageRow>();
  for (const row of all) {
    const isKnown = names.has(row.client);
    const named = isKnown ? row : { ...row, client: other, version: other };
    const key = JSON.stringify([named.client, named.version, row.interface, row.route]);
    const known = rows.get(key);
    rows.set(key, known ? addRows(known, named) : named);
  }
  return {
    since,
    namesForgotten: reports.reduce((sum, { namesForgotten }) => sum + namesForgotten, 0),
    usage: sortUsage([...rows.values()].map(forget)),
  };
}

/** Leaves out the days that are long ago: a worker that has ended goes on telling them. */
function forget(row: UsageRow): UsageRow {
  const now = Date.now();
  const days = recentDays(row.days, now);
  return { ...row, days, requestsADay: meanOfDays(days, row.firstSeen, now) };
}

function findNames(rows: readonly UsageRow[]): ReadonlySet<string> {
  const requests = new Map<string, number>();
  for (const { client, requests: number } of rows) {
    if (client !== other) requests.set(client, (requests.get(client) ?? 0) + number);
  }
  const most = [...requests].sort(([, a], [, b]) => b - a).slice(0, maxNames);
  return new Set([...most.map(([name]) => name), other]);
}

function addRows(a: UsageRow, b: UsageRow): UsageRow {
  return {
    ...a,
    requests: a.requests + b.requests,
    statuses: addNumbers(a.statuses, b.statuses),
    parameters: addParameters(a.parameters, b.parameters),
    firstSeen: a.firstSeen < b.firstSeen ? a.firstSeen : b.firstSeen,
    lastSeen: a.lastSeen > b.lastSeen ? a.lastSeen : b.lastSeen,
    days: addNumbers(a.days, b.days),
  };
}

function addNumbers<Name extends string>(
  a: Readonly<Record<Name, number>>,
  b: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const sum: Record<string, number> = { ...a };
  for (const [name, number] of Object.entries<number>(b)) sum[name] = (sum[name] ?? 0) + number;
  return sum;
}

function addParameters(
  a: readonly UsedParameter[],
  b: readonly UsedParameter[],
): readonly UsedParameter[] {
  const sum = new Map(a.map((parameter) => [parameter.name, parameter]));
  for (const parameter of b) {
    const known = sum.get(parameter.name)?.requests ?? 0;
    sum.set(parameter.name, { ...parameter, requests: known + parameter.requests });
  }
  return [...sum.values()].sort((x, y) => y.requests - x.requests);
}
