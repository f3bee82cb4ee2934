// Traces: what a collector is sent by a gateway that runs, and what it costs when there is none.
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { version } from '../../src/config/package.ts';
import {
  baseOf,
  demoEnvironment,
  dist,
  listing,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { findFreePort } from '../support/http/free-port.js';
import { secret, signIn } from '../support/http/tokens.ts';
import { makeRecords, startLegacyService } from '../support/legacy/legacy-service.ts';
import { startCollector } from '../support/tracing/collector.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${spanId}-01`;

/** A gateway with demonstration outfits, and a collector that it sends its traces to. */
async function startTraced(settings: (endpoint: string) => Record<string, string> = () => ({})) {
  const collector = await startCollector();
  onTestFinished(() => collector.close());
  const server = runServer({
    ...(await demoEnvironment()),
    SEED: 'demo',
    AUTH_JWT_SECRET: secret,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_BSP_SCHEDULE_DELAY: '50',
    ...settings(collector.endpoint),
  });
  return { server, collector, base: await baseOf(server) };
}

/** An old service that such a gateway passes requests on to, with the settings for that. */
async function startLegacy() {
  const legacy = await startLegacyService(makeRecords(3));
  onTestFinished(() => legacy.close());
  const settings = { LEGACY_MODE: 'shadow', LEGACY_URL: legacy.base, LEGACY_SAMPLE: '0' };
  return { legacy, settings };
}

test('a trace goes from the request to its operation and its statements, and on with traceparent', async () => {
  const { base, server, collector } = await startTraced();
  const response = await fetch(`${base}/api/outfits/?page=2&page_token=hidden-1`, {
    headers: { traceparent, 'x-request-id': 'one', 'x-client-name': 'shop' },
  });
  await response.bytes();
  expect(response.status).toBe(200);
  expect(response.headers.get('traceparent')).toBeNull();

  const [request] = await collector.find({ 'gateway.request.id': 'one' });
  expect(request).toMatchObject({
    traceId,
    parentSpanId: spanId,
    name: 'GET /api/outfits/',
    kind: 2,
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/api/outfits/',
      'http.response.status_code': 200,
      'server.address': new URL(base).hostname,
      'server.port': Number(new URL(base).port),
      'url.path': '/api/outfits/',
      'gateway.client.name': 'shop',
    },
  });
  const inTrace = () => collector.spans().filter((span) => span.traceId === traceId);
  const [operation] = inTrace().filter(({ name }) => name === 'query');
  expect(operation).toMatchObject({
    parentSpanId: request?.spanId,
    attributes: {
      'graphql.operation.type': 'query',
      'graphql.operation.name': 'ListOutfits',
      'gateway.cache': 'miss',
    },
  });
  // The page of outfits and their owners is one statement.
  const statements = inTrace().filter(({ attributes }) => attributes['db.query.text']);
  expect(statements).toMatchObject([
    {
      parentSpanId: operation?.spanId,
      kind: 3,
      attributes: {
        'db.system.name': 'postgresql',
        'db.operation.name': 'SELECT',
        'db.namespace': expect.any(String),
        'server.address': expect.any(String),
      },
    },
  ]);
  expect(inTrace()).toHaveLength(3);
  expect(collector.resource()).toMatchObject({
    'service.name': 'outfit-gateway',
    'service.version': version,
    'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  expect([...collector.paths()]).toEqual(['/v1/traces']);
  expect(collector.text()).not.toContain('hidden');
  expect(await stop(server)).toBe(0);
});

test('traces hold no variable, no literal, no token, no query string and no word of an error', async () => {
  const { base, collector } = await startTraced();
  const token = (await signIn(1))['authorization'] ?? '';
  const headers = { 'content-type': 'application/json', authorization: token };
  const ask = async (id: string, query: string, variables: object = {}) => {
    const body = JSON.stringify({ query, variables });
    const sent = { ...headers, 'x-request-id': id };
    return (await fetch(`${base}/graphql`, { method: 'POST', headers: sent, body })).json();
  };
  const find = 'query Find($name: String) { user(username: $name) { id } }';
  await ask('variable', find, { name: 'hidden-1' });
  await ask('literal', '{ outfits(filter: { search: "hidden-2" }) { count } }');
  const imageKey = 'outfits/770fa6b0-4523-43a9-a112-20a2eb647933.jpeg';
  const created = await ask(
    'write',
    'mutation Add($input: CreateOutfitInput!) { createOutfit(input: $input) { outfit { title } } }',
    { input: { title: 'hidden-3', imageKey } },
  );
  expect(created).toMatchObject({ data: { createOutfit: { outfit: { title: 'hidden-3' } } } });
  await ask('invalid', '{ hidden5 }');
  await ask('wrong', find, { name: ['hidden-6'] });
  await fetch(`${base}/api/outfits/?page=hidden-7`, {
    headers: { authorization: 'Bearer hidden-8', cookie: 'hidden-9' },
  });
  const [write] = await collector.find({ 'gateway.request.id': 'write' });
  await collector.find({ 'http.response.status_code': 401 });
  const ofWrite = collector.spans().filter((span) => span.traceId === write?.traceId);
  expect(ofWrite).toContainEqual(expect.objectContaining({ name: 'mutation' }));
  expect(ofWrite.some(({ attributes }) => attributes['db.query.text'])).toBe(true);
  for (const part of ['hidden', ...token.split('.')]) {
    expect(collector.text()).not.toContain(part);
  }
});

test('traces tell an answer from memory, an error by its code, unknown methods under one name, and no failure for what REST refuses', async () => {
  const { base, collector } = await startTraced();
  for (let time = 0; time < 2; time += 1) await listing(base);
  const hits = { 'graphql.operation.name': 'ListOutfits', 'gateway.cache': 'hit' };
  const [hit] = await collector.find(hits);
  const inTrace = collector.spans().filter((span) => span.traceId === hit?.traceId);
  expect(inTrace.filter(({ attributes }) => attributes['db.query.text'])).toEqual([]);

  await fetch(`${base}/graphql?query={outfits(page:9999){count}}`);
  const failed = await collector.find({ 'graphql.operation.type': 'query' }, 3);
  expect(failed.at(-1)?.attributes['gateway.graphql.error.codes']).toEqual(['PAGE_NOT_FOUND']);

  // What is refused has a span, too.
  await fetch(`${base}/graphql?query={nothing}`, { headers: { traceparent } });
  const requests = await collector.find({ 'http.route': '/graphql' }, 2);
  const request = requests.find((span) => span.traceId === traceId);
  const attributes = { 'gateway.graphql.error.codes': ['GRAPHQL_VALIDATION_FAILED'] };
  await expect
    .poll(() => collector.spans().filter((span) => span.parentSpanId === request?.spanId))
    .toMatchObject([{ name: 'GraphQL Operation', attributes }]);
  await fetch(`${base}/graphql?documentId=nope`);
  await expect.poll(collector.text, { timeout: 20_000 }).toContain('DOCUMENT_NOT_FOUND');

  await fetch(`${base}/api/outfits/`, { method: 'PROPFIND' });
  const [unknown] = await collector.find({ 'http.request.method_original': 'PROPFIND' });
  expect(unknown?.name).toBe('HTTP /api/outfits/');
  expect(unknown?.attributes['http.request.method']).toBe('_OTHER');

  // What REST refuses is no failure.
  const type = { 'content-type': 'application/json', ...(await signIn(1)) };
  for (const [id, status, codes, query, more] of [
    ['1', 404, ['PAGE_NOT_FOUND'], '?page=9999', {}],
    ['2', 400, undefined, '', { method: 'POST', body: '{"image_key":"x"}' }],
  ] as const) {
    const id32 = id.padStart(32, '0');
    const headers = { ...type, traceparent: `00-${id32}-${spanId}-01` };
    expect((await fetch(`${base}/api/outfits/${query}`, { ...more, headers })).status).toBe(status);
    const ofRequest = () => collector.spans().filter((span) => span.traceId === id32);
    const statuses = () =>
      ofRequest().map(({ attributes: given }) => given['http.response.status_code']);
    await expect.poll(statuses).toContain(status);
    const operation = ofRequest().find(({ attributes: given }) => given['graphql.operation.type']);
    expect(operation?.attributes['gateway.graphql.error.codes']).toEqual(codes);
    for (const { status: outcome, attributes: given } of ofRequest()) {
      expect(outcome).toEqual({ code: 0 });
      expect(given).not.toHaveProperty('error.type');
    }
  }
});

test('traces stay apart when requests wait for each other, and end when a client leaves', async () => {
  const settings = { DATABASE_POOL_MAX: '2', CACHE_MAX_SIZE: '0' };
  const { base, collector } = await startTraced(() => settings);
  const ids = Array.from({ length: 30 }, (_, page) => String(page + 1).padStart(32, '0'));
  await Promise.all(
    ids.map(async (id, index) => {
      const headers = { traceparent: `00-${id}-${spanId}-01` };
      await (await fetch(`${base}/api/outfits/?page=${index + 1}`, { headers })).bytes();
    }),
  );
  await collector.find({ 'graphql.operation.name': 'ListOutfits' }, ids.length);
  await collector.find({ 'http.route': '/api/outfits/' }, ids.length);
  for (const id of ids) {
    const spans = collector.spans().filter((span) => span.traceId === id);
    const operation = spans.find(({ name }) => name === 'query');
    const statements = spans.filter(({ attributes }) => attributes['db.query.text']);
    expect(statements).toMatchObject([{ parentSpanId: operation?.spanId }]);
  }

  const leaving = new AbortController();
  const stream = await fetch(`${base}/graphql?query=subscription{outfits{count}}`, {
    headers: { accept: 'text/event-stream' },
    signal: leaving.signal,
  });
  expect(stream.status).toBe(200);
  leaving.abort();
  await collector.find({ 'http.route': '/graphql', 'gateway.client.left': true });
});

test('traces are sent at the end, obey the environment, name log lines, and have no health probes', async () => {
  const { base, collector, server } = await startTraced(() => ({
    LOG_LEVEL: 'debug',
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    OTEL_SERVICE_NAME: 'shop',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=of-the-collector',
    OTEL_TRACES_SAMPLER: 'parentbased_always_off',
  }));
  const headers = { traceparent };
  await fetch(`${base}/health/ready`, { headers });
  await listing(base);
  await fetch(`${base}/nothing`, { headers });
  const [line] = await server.until(/^.*"path":"\/nothing".*$/m);
  expect(collector.spans()).toEqual([]);
  expect(await stop(server)).toBe(0);

  const [span, ...others] = collector.spans();
  expect(others).toEqual([]);
  expect(JSON.parse(line)).toMatchObject({ trace_id: traceId, span_id: span?.spanId });
  const resource = { 'service.name': 'shop', 'deployment.environment.name': 'staging' };
  expect(collector.resource()).toMatchObject(resource);
  expect(collector.headers()[0]?.['x-key']).toBe('of-the-collector');
});

test('traces go on in the old service, which gets traceparent of this gateway instead of the client’s', async () => {
  const { legacy, settings } = await startLegacy();
  const { base, collector } = await startTraced(() => settings);
  await listing(base);
  const headers = { traceparent, tracestate: 'shop=1', 'x-request-id': 'passed' };
  await (await fetch(`${base}/api/outfits/`, { headers })).bytes();
  const [request] = await collector.find({ 'gateway.request.id': 'passed' });
  const sent = await collector.find({ 'url.full': legacy.url }, 2);
  const outgoing = sent.find((span) => span.traceId === traceId);
  const { hostname, port } = new URL(legacy.base);
  const server = { 'server.address': hostname, 'server.port': Number(port) };
  const passed = { name: 'GET', parentSpanId: request?.spanId, kind: 3, attributes: server };
  expect(outgoing).toMatchObject(passed);
  const received = { traceparent: `00-${traceId}-${outgoing?.spanId}-01`, tracestate: 'shop=1' };
  expect(legacy.requests.at(-1)?.headers).toMatchObject(received);
});

test('traces go to the address of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, and on by OTEL_PROPAGATORS', async () => {
  const { legacy, settings } = await startLegacy();
  const { base, collector, server } = await startTraced((endpoint) => ({
    ...settings,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/all?of=them`,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_PROPAGATORS: 'baggage,b3',
    OTEL_TRACES_EXPORTER: 'otlp,console',
    OTEL_TRACES_SAMPLER: 'sometimes',
  }));
  const headers = { traceparent, baggage: 'shop=1', 'x-request-id': 'passed' };
  await (await fetch(`${base}/api/outfits/`, { headers })).bytes();
  const [request] = await collector.find({ 'gateway.request.id': 'passed' });
  expect(request?.traceId).not.toBe(traceId);
  expect([...collector.paths()]).toEqual(['/all?of=them']);
  expect(legacy.requests.at(-1)?.headers).toMatchObject({ traceparent, baggage: 'shop=1' });
  await server.until(/name: 'GET \/api\/outfits\/'/);
  expect(server.output()).toMatch(/OTEL_PROPAGATORS names \\"b3\\", which is left out/);
  expect(server.output()).toMatch(/OTEL_TRACES_SAMPLER value \\"sometimes\\" invalid/);
});

test('traces that the collector does not take cost one line, and nothing else', async () => {
  const server = runServer({
    ...(await demoEnvironment()),
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await findFreePort()}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  });
  const base = await baseOf(server);
  await listing(base);
  await server.until(/traces are lost/);
  for (let time = 0; time < 50; time += 1) await listing(base);
  expect(await stop(server)).toBe(0);
  expect(server.output().match(/traces are lost/g)).toHaveLength(1);
  expect(server.errors()).toBe('');
});

test('spans that the collector rejects and a protocol that is not spoken cost a line each', async () => {
  const collector = await startCollector(
    '{"partialSuccess":{"rejectedSpans":"3","errorMessage":"quota"}}',
  );
  onTestFinished(collector.close);
  const server = runServer({
    ...(await demoEnvironment()),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  });
  const base = await baseOf(server);
  for (let time = 0; time < 5; time += 1) await listing(base);
  await server.until(/rejectedSpans.*quota.*traces are lost: .* does not take all of them/);
  expect(server.output()).toContain('OTEL_EXPORTER_OTLP_PROTOCOL is \\"grpc\\", which is left out');
  expect(await stop(server)).toBe(0);
  expect(server.output().match(/traces are lost/g)).toHaveLength(1);
});

const forbid = fileURLToPath(
  new URL('../support/tracing/forbid-opentelemetry.js', import.meta.url),
);
const start = async (settings: Record<string, string>) => {
  const environment = { PORT: '0', ...(await demoEnvironment()), ...settings };
  return run(['--import', forbid, `${dist}server.js`], environment);
};
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };

test.each([
  {},
  { ...endpoint, OTEL_SDK_DISABLED: 'TRUE' },
  { ...endpoint, OTEL_TRACES_EXPORTER: 'none' },
])('where tracing is switched off by %j, nothing that traces is loaded', async (environment) => {
  const server = await start(environment);
  await listing(await baseOf(server));
  expect(await stop(server)).toBe(0);
});

test('tracing is not switched off by an endpoint: the same trap shuts', async () => {
  const traced = await start(endpoint);
  expect(await traced.ended).toBe(1);
  expect(traced.errors()).toContain('OpenTelemetry was loaded');
});
