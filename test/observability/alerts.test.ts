// Names of metrics: by the rules of Prometheus, and what docs/alerts.yaml, docs/observe.md and the dashboard of deploy/
// name must be there.
import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { fallbackReasons, type Replicas } from '../../src/database/standby/replicas.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { type MetricsSource, serveMetrics } from '../../src/observability/metrics-server.ts';
import { lostSinceRelease } from '../support/documents/released.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { type LegacyService, startLegacyService } from '../support/legacy/legacy-service.ts';
import { records, rowsOf } from '../support/legacy/two-services.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const rules = readRules(read('docs/alerts.yaml'));
const panels = readPanels(read('deploy/grafana/outfit-gateway.json'));
const page = read('docs/observe.md');

let legacy: LegacyService;
let gateway: TestGateway;
let app: FastifyInstance;
let scraped: string;
/** The labels of each series, by the name of its metric. */
let series: ReadonlyMap<string, readonly Readonly<Record<string, string>>[]>;

beforeAll(async () => {
  legacy = await startLegacyService(records());
  gateway = await openGateway('PostgreSQL', rowsOf(records()));
  const metrics = new Metrics(gateway.database);
  metrics.followCounts({ wrongCounts: 0, pendingSeconds: 0 });
  metrics.followAttachment({ problems: 0, lag: 1 });
  metrics.timeWebhook()('accepted', 0.01);
  const standby = { name: 'standby:5432', problem: undefined, reads: 1 };
  metrics.followReplicas({
    standbys: [standby as Replicas['standbys'][number]],
    primaryReads: Object.fromEntries(
      fallbackReasons.map((reason) => [reason, 1]),
    ) as Replicas['primaryReads'],
    replicationLag: () => 0,
  });
  const settings = {
    LEGACY_URL: legacy.base,
    LEGACY_MODE: 'mirror',
    LEGACY_SAMPLE: '100',
    LEGACY_RECHECK: '0',
  };
  const { legacyMode, legacyRecheck, legacySample, legacyUrl } = readConfig(settings);
  const modes = {
    legacyMode,
    legacyRecheck,
    legacySample,
    legacyUrl,
  } as const;
  app = await buildApp({ ...gateway.config, ...modes }, gateway.database, { metrics });
  const base = await app.listen({ port: 0, host: '127.0.0.1' });
  const ask = async (path: string) => (await fetch(`${base}${path}`)).bytes();
  for (const path of [
    '/health/ready',
    '/graphql?query={__typename}',
    '/graphql?query={nope}',
    '/api/outfits/?user=5',
  ]) {
    await ask(path);
  }
  await ask('/api/users/');
  const text = async () => (await metrics.print()).text;
  // Asked again: a busy machine drops comparisons.
  const compare = (path: string, outcome: string) =>
    vi.waitFor(async () => {
      await ask(path);
      expect(await text()).toContain(`outcome="${outcome}"`);
    }, 20_000);
  legacy.fault = 'another value';
  await compare('/api/outfits/?page=2', 'different');
  legacy.fault = 'closing early';
  await compare('/api/outfits/', 'unreachable');
  scraped = await scrape(metrics);
  // What Prometheus adds by itself.
  series = readSeries(`${await text()}\nup 1\n`);
});
afterAll(async () => {
  await app?.close();
  await gateway?.close();
  await legacy?.close();
});

describe.each([...rules, ...panels])('$alert', ({ expr }) => {
  test('is a valid query of existing metrics and labels', () => {
    const { selectors, grouped } = readQuery(expr);
    expect(selectors.length).toBeGreaterThan(0);
    for (const { metric, labels } of selectors) {
      for (const { label } of labels) expect(namesOf(metric), metric).toContain(label);
    }
    const known = selectors.flatMap(({ metric }) => namesOf(metric));
    for (const label of grouped) expect(known).toContain(label);
  });

  test('looks for routes, results and kinds that occur', () => {
    const occurring = readQuery(expr).selectors.flatMap(({ metric, labels }) =>
      labels
        .filter(({ label }) => ['accepted', 'result', 'route'].includes(label))
        .map((matcher) => ({ metric, ...matcher })),
    );
    for (const { metric, label, matches } of occurring) {
      const values = (series.get(metric) ?? []).map((labels) => labels[label] ?? '');
      expect(values.filter(matches), `${metric} ${label}`).not.toEqual([]);
    }
  });
});

test.each(rules)(
  '$alert says what it means and what to do, with labels that its query gives',
  (rule) => {
    const { expr, labels, annotations } = rule;
    const [summary, description] = [expect.stringMatching(/./), expect.stringMatching(/./)];
    expect(annotations).toEqual({ summary, description });
    expect(['page', 'ticket']).toContain(labels.severity);
    const { grouped } = readQuery(expr);
    for (const [, label] of JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)) {
      expect(grouped).toContain(label);
    }
  },
);

test.each(panels)('the legend of $alert has labels that its query gives', ({ expr, text }) => {
  const { selectors, grouped } = readQuery(expr);
  const isSummed = /^(?:sum|max|topk|histogram_quantile)/.test(expr);
  const labels = isSummed ? grouped : selectors.flatMap(({ metric }) => namesOf(metric));
  for (const [, label] of text.matchAll(/\{\{(\w+)\}\}/g)) expect(labels).toContain(label);
});

test('docs/observe.md names each metric of the gateway, and no other', () => {
  const named = new Set([...page.matchAll(/`(gateway_\w+)[`{]/g)].map(([, name]) => name));
  const all = [...series.keys()]
    .filter((name) => name.startsWith('gateway_'))
    .map((name) => name.replace(/_(bucket|count|sum)$/, ''));
  expect([...named].toSorted()).toEqual([...new Set(all)].toSorted());
});

test('every metric of the last release is there, with its kind and labels', () => {
  const kinds = new Map(
    [...scraped.matchAll(/^# TYPE (gateway_\w+) (\w+)$/gm)].map(([, name = '', kind]) => [
      name,
      kind,
    ]),
  );
  const metrics = [...kinds].flatMap(([name, kind]) => {
    const labels = (series.get(name) ?? series.get(`${name}_count`))?.flatMap(Object.keys);
    return labels ? [[name, { kind, labels: [...new Set(labels)].toSorted() }]] : [];
  });
  expect(lostSinceRelease('metrics', Object.fromEntries(metrics.toSorted()))).toEqual([]);
});

test('each metric has a name by the rules of Prometheus', () => {
  const types = [...scraped.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
  expect(types.length).toBeGreaterThan(20);
  for (const [, name = '', type] of types) {
    expect(name.endsWith('_total'), name).toBe(type === 'counter');
    if (type === 'histogram') expect(name).toMatch(/_(?:duration_seconds|bytes)$/);
    expect(name).not.toMatch(/_(?:ms|milliseconds|kb|mb|percent|count|sum|bucket)(?:_total)?$/);
  }
});

/** What Prometheus gets. */
async function scrape(source: MetricsSource): Promise<string> {
  const server = await serveMetrics(source, { host: '127.0.0.1', port: 0 });
  const response = await fetch(`http://127.0.0.1:${server.port}/metrics`);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  server.close();
  return text;
}

function namesOf(metric: string): string[] {
  const found = series.get(metric);
  if (!found) throw new Error(`There is no metric ${metric}.`);
  // Prometheus adds these to each.
  return ['job', 'instance', ...new Set(found.flatMap((labels) => Object.keys(labels)))];
}

interface Matcher {
  readonly label: string;
  readonly matches: (value: string) => boolean;
}

/** What a query selects; throws if it is not valid. */
function readQuery(expr: string) {
  const selectors: { metric: string; labels: Matcher[] }[] = [];
  const grouped: string[] = [];
  const textOf = (node: { from: number; to: number } | null) =>
    node ? expr.slice(node.from, node.to) : '';
  parser
    .configure({ strict: true })
    .parse(expr)
    .iterate({
      enter({ name, node }) {
        if (name === 'VectorSelector') {
          selectors.push({ metric: textOf(node.getChild('Identifier')), labels: [] });
        } else if (name === 'UnquotedLabelMatcher') {
          const value = textOf(node.getChild('StringLiteral')).slice(1, -1);
          const operator = textOf(node.getChild('MatchOp'));
          const pattern = new RegExp(operator.includes('~') ? `^(?:${value})$` : `^${value}$`);
          selectors.at(-1)?.labels.push({
            label: textOf(node.getChild('LabelName')),
            matches: (given) => pattern.test(given) !== operator.startsWith('!'),
          });
        } else if (name === 'GroupingLabels') {
          grouped.push(...node.getChildren('LabelName').map(textOf));
        }
      },
    });
  return { selectors, grouped };
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

function readRules(file: string): readonly Rule[] {
  const { groups } = parse(file) as { groups: readonly { rules: readonly Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** Each query of the dashboard, with the variables of Grafana filled in. */
function readPanels(file: string) {
  const { panels } = JSON.parse(file) as { panels: readonly Panel[] };
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      alert: `${title}: ${legendFormat}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', 'outfit-gateway'),
      text: legendFormat,
    })),
  );
}

function readSeries(text: string) {
  const found = new Map<string, Record<string, string>[]>();
  for (const [, name = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    const series = Object.fromEntries(pairs.map(([, label = '', value = '']) => [label, value]));
    found.set(name, [...(found.get(name) ?? []), series]);
  }
  return found;
}
