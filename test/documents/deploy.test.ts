// deploy/, Dockerfile and compose.yaml: each setting, port, path, label and time in them is one of the program.
// The metrics of the dashboard are checked in test/observability/alerts.test.ts.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createLine, settingsOf, withSettings } from '../../src/commands/options/command-line.ts';
import { allSettings, readConfig } from '../../src/config/config.ts';
import { version } from '../../src/config/package.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { serveMetrics } from '../../src/observability/metrics-server.ts';
import { pairsOf, readDockerfile, valuesOf } from '../support/documents/dockerfile.ts';
import { root } from '../support/documents/page.ts';
import { useGateway } from '../support/gateway.ts';

/** What a file of YAML has, a test finds out. */
type Manifest = ReturnType<typeof JSON.parse>;

const read = (name: string) => readFileSync(join(root, name), 'utf8');
const readYaml = (name: string): Manifest[] =>
  parseAllDocuments(read(name)).map((document) => {
    expect([document.errors, document.warnings], name).toEqual([[], []]);
    return document.toJS();
  });

const files = readdirSync(join(root, 'deploy/kubernetes')).map(
  (name) => `deploy/kubernetes/${name}`,
);
const manifests = files.flatMap(readYaml);
const only = (kind: string, name?: string): Manifest => {
  const found = manifests.filter(
    (one) => one.kind === kind && (!name || one.metadata.name === name),
  );
  expect(found, kind).toHaveLength(1);
  return found[0];
};
const [compose] = readYaml('compose.yaml');
const services = manifests.filter(({ kind }) => kind === 'Service');
const deployment = only('Deployment');
const pod = deployment.spec.template;
const [gateway] = pod.spec.containers;
const job = only('Job').spec.template;
const workloads = [pod, job];
const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'];
const { before, stages } = readDockerfile();
const [, image = []] = stages;
const imageSettings = pairsOf(image, 'ENV');

describe.each<[string, Record<string, string>]>([
  ['the image', imageSettings],
  ['the ConfigMap', only('ConfigMap').data],
  ['compose.yaml', compose.services.gateway.environment],
])('%s', (_name, { NODE_ENV: _ofNode, ...environment }) => {
  test('sets settings only, to values that the gateway takes', () => {
    const names = allSettings.map(({ name }) => name);
    for (const [name, value] of Object.entries(environment)) {
      expect(names).toContain(name);
      readConfig({ [name]: value.replace(/\$\{\w+(?::-(\w+))?\}/g, '$1') });
    }
  });
});

test('settings that hold secrets are named by the Secret, not written into a manifest', () => {
  const secrets = workloads.map(({ spec }) => spec.containers[0].envFrom.at(-1).secretRef.name);
  expect(secrets).toEqual(['outfit-gateway', 'outfit-gateway']);
  expect(read('deploy/kubernetes/gateway.yaml')).toContain('secret generic outfit-gateway ');
  expect(only('ConfigMap').metadata.name).toBe(gateway.envFrom[0].configMapRef.name);
  expect(Object.keys(only('ConfigMap').data).join()).not.toMatch(/DATABASE_URL|SECRET/);
});

test('every port is one that the gateway listens on, and is the same everywhere', () => {
  const ports = {
    http: Number(imageSettings['PORT']),
    metrics: Number(only('ConfigMap').data.METRICS_PORT),
  };
  expect(readConfig(imageSettings)).toMatchObject({ host: '0.0.0.0', port: ports.http });
  expect(valuesOf(image, 'EXPOSE')).toEqual([`${ports.http} ${ports.metrics}`]);
  const named = gateway.ports.map(({ name, containerPort }: Manifest) => [name, containerPort]);
  expect(Object.fromEntries(named)).toEqual(ports);
  const targets = services.flatMap(({ spec }) => spec.ports);
  expect(targets).toMatchObject([{ targetPort: 'http' }, { targetPort: 'metrics' }]);
  for (const probe of probes) expect(gateway[probe].httpGet.port).toBe('http');
  const { PORT, METRICS_PORT } = compose.services.gateway.environment;
  const published = compose.services.gateway.ports.map((port: string) => port.split(':').at(-1));
  expect(published).toEqual([PORT, METRICS_PORT]);
  expect([PORT, METRICS_PORT].map(Number)).toEqual(Object.values(ports));
});

const running = useGateway('PostgreSQL');

test('every path that is asked is served', async () => {
  const paths = probes.map((probe) => gateway[probe].httpGet.path);
  expect(paths).toEqual(['/health/live', '/health/live', '/health/ready']);
  for (const url of paths) {
    expect((await running.app.inject({ url })).statusCode).toBe(200);
  }
  const server = await serveMetrics(new Metrics(running.database), { host: '127.0.0.1', port: 0 });
  for (const { path } of only('ServiceMonitor').spec.endpoints) {
    const scraped = await fetch(`http://127.0.0.1:${server.port}${path}`);
    expect(await scraped.text()).toContain('\ngateway_');
  }
  server.close();
});

test('selectors select what they are meant for', () => {
  const { labels } = pod.metadata;
  const selectors = [
    deployment.spec.selector.matchLabels,
    pod.spec.topologySpreadConstraints[0].labelSelector.matchLabels,
    only('PodDisruptionBudget').spec.selector.matchLabels,
    ...services.map(({ spec }) => spec.selector),
  ];
  for (const selector of selectors) {
    expect(labels).toMatchObject(selector);
    expect(job.metadata.labels).not.toMatchObject(selector);
  }
  const { selector, endpoints, jobLabel } = only('ServiceMonitor').spec;
  const scraped = services.filter(({ metadata }) =>
    Object.entries(selector.matchLabels).every(([key, value]) => metadata.labels[key] === value),
  );
  expect(scraped).toMatchObject([
    {
      metadata: { name: 'outfit-gateway-metrics' },
      spec: { ports: [{ name: endpoints[0].port }] },
    },
  ]);
  // The rules and the dashboard go by this name of the job.
  expect(scraped[0].metadata.labels[jobLabel]).toBe('outfit-gateway');
  expect(read('docs/alerts.yaml')).toContain('job="outfit-gateway"');
});

test('a pod has the time that a shutdown takes, and none is stopped before another one is ready', () => {
  const [, seconds] =
    /exits with code 0 within (\d+) seconds/.exec(read('docs/install.md').replace(/\s+/g, ' ')) ??
    [];
  const [, delay] = gateway.lifecycle.preStop.exec.command;
  const grace = pod.spec.terminationGracePeriodSeconds;
  expect(grace).toBeGreaterThan(Number(delay) + Number(seconds));
  expect(Number.parseInt(compose.services.gateway.stop_grace_period, 10)).toBeGreaterThan(
    Number(seconds),
  );
  expect(deployment.spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
  expect(only('PodDisruptionBudget').spec.maxUnavailable).toBeLessThan(deployment.spec.replicas);
});

test('every container runs a command of this version, as an unprivileged user without write access', () => {
  expect(valuesOf(image, 'ENTRYPOINT')).toEqual(['["node", "/app/dist/commands/cli.js"]']);
  expect(valuesOf(image, 'CMD')).toEqual(['["start"]']);
  expect(valuesOf(image, 'USER')).toEqual(['node']);
  expect(pairsOf(image, 'ARG')).toHaveProperty('VERSION', version);
  expect(pairsOf(image, 'LABEL')).toMatchObject({ 'org.opencontainers.image.licenses': 'MIT' });
  const bases = stages.flatMap((stage) => valuesOf(stage, 'FROM'));
  for (const base of bases) expect(base).toMatch(/^\$\{NODE_IMAGE\}(?: AS build)?$/);
  expect(pairsOf(before, 'ARG')['NODE_IMAGE']).toMatch(/^node:\d+-[\w-]+$/);
  for (const { spec } of workloads) {
    const [{ args, image: tag, resources, securityContext }] = spec.containers;
    expect(tag).toBe(`outfit-gateway:${version}`);
    expect(existsSync(join(root, `src/commands/${args[0]}.ts`))).toBe(true);
    expect(spec.securityContext.runAsNonRoot).toBe(true);
    expect(securityContext.readOnlyRootFilesystem).toBe(true);
    expect(resources.limits.memory).toMatch(/^\d+Mi$/);
  }
  expect(compose.services.migrate.command).toEqual(['migrate']);
});

test('PostgreSQL in Compose is healthy when it can be reached by other containers', () => {
  expect(compose.services.database.healthcheck.test).toContain('--host=127.0.0.1');
});

test('the unit gives each process a port of its own, and trusts the proxy, whatever the file of settings says', () => {
  const [, words = ''] =
    /^ExecStart=\S+ \S+server\.js (.*)$/m.exec(read('deploy/outfit-gateway@.service')) ?? [];
  const start = withSettings(createLine('start'));
  start.parse(words.replaceAll('%i', '4001').split(' '), { from: 'user' });
  // As in .env.example.
  const empty = { TRUST_PROXY: '', LOG_FORMAT: '' };
  const file = { HOST: 'localhost', PORT: '4000', METRICS_PORT: '9100', ...empty };
  expect(readConfig({ ...file, ...settingsOf(start) })).toMatchObject({
    ...{ host: '127.0.0.1', port: 4001, metricsPort: 14_001 },
    ...{ trustProxy: ['127.0.0.1'], logFormat: 'json' },
  });
});

// Debian's package systemd; an image of a container may lack it.
test.runIf(existsSync('/usr/bin/systemd-analyze'))('systemd takes every line of the unit', () => {
  const name = 'outfit-gateway@.service';
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-unit-'));
  const text = read(`deploy/${name}`).replace('/usr/bin/node', process.execPath);
  writeFileSync(join(folder, name), text);
  const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', join(folder, name)]);
  rmSync(folder, { recursive: true });
  expect(`${stdout}${stderr}`).toBe('');
});
