// `npm run replay`: what stands in access logs is asked of both services as it stood there.
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import * as replayCommand from '../../src/commands/replay.ts';
import { startCommand } from '../support/cli/commands.ts';
import { useFolder } from '../support/cli/folder.ts';
import { type LegacyService, startLegacyService } from '../support/legacy/legacy-service.ts';
import { accept, compare } from '../support/legacy/reports.ts';
import { type ListeningGateway, openBefore, records } from '../support/legacy/two-services.ts';

const { save } = useFolder();

const line = (target: string, method = 'GET') =>
  `10.0.0.1 - - [22/Nov/2026:02:00:00 +0000] "${method} ${target} HTTP/1.1" 200 12 "-" "okhttp/4.9"`;

/** One request in each form that logs have, for `/api/outfits/?f=` and the number of the form. */
const forms: Readonly<Record<string, string>> = {
  common: '10.0.0.1 - ann [22/Nov/2026:02:00:00 +0000] "GET /api/outfits/?f=0 HTTP/1.1" 200 12',
  combined: line('/api/outfits/?f=1'),
  'with a virtual host': `shop.test:443 ${line('/api/outfits/?f=2')}`,
  'with a whole URL': line('https://shop.test:443/api/outfits/?f=3'),
  'with escapes': line('/api/outfits/\\x3ff=4'),
  'nginx JSON': '{"time":"x","request":"GET /api/outfits/?f=5 HTTP/1.1","status":200}',
  'nginx fields': '{"request_method":"GET","request_uri":"/api/outfits/?f=6","uri":"/x"}',
  'a path and its query': '{"method":"GET","path":"/api/outfits/","query":"f=7"}',
  Caddy: '{"request":{"method":"GET","host":"x","uri":"/api/outfits/?f=8"},"status":200}',
  Traefik: '{"RequestMethod":"GET","RequestPath":"/api/outfits/?f=9","DownstreamStatus":200}',
  Fastify: '{"req":{"method":"GET","url":"/api/outfits/?f=10"},"msg":"incoming request"}',
  'what became of the path':
    '{"request_method":"GET","uri":"/api/outfits/","request":"GET /api/outfits/?f=11 HTTP/1.1"}',
  Docker: JSON.stringify({ log: `${line('/api/outfits/?f=12')}\n`, stream: 'stdout', time: 'x' }),
  'Docker around JSON': JSON.stringify({
    log: '{"req":{"method":"GET","url":"/api/outfits/?f=13"}}\n',
  }),
  uWSGI:
    '[pid: 7|app: 0|req: 1/1] 10.0.0.1 () {4 vars} [x] GET /api/outfits/?f=14 => generated 5 bytes',
  'the router of Heroku': 'at=info method=GET path="/api/outfits/?f=15" host=x status=200',
  Cloudflare: '{"ClientRequestMethod":"GET","ClientRequestURI":"/api/outfits/?f=16"}',
  Azure: '{"properties":{"httpMethod":"GET","requestUri":"/api/outfits/?f=17"}}',
  'Elastic Common Schema': '{"http.request.method":"GET","url.original":"/api/outfits/?f=18"},',
  'nginx JSON with its escapes': '{"request":"GET /api/outfits/?f=19 HTTP/1.1","agent":"\\x22a"}',
  colours: '10.0.0.1 "\u001b[36mGET /api/outfits/?f=20 HTTP/1.1\u001b[0m" 200',
  CloudFront:
    '#Version: 1.0\n#Fields: date time x-edge-location c-ip cs-method cs(Host) cs-uri-stem sc-status cs-uri-query\n2026-11-22\t02:00:00\tFRA\t10.0.0.1\tGET\tx\t/api/outfits/\t200\tf=21',
  IIS: '#Software: IIS\n#Fields: date cs-method cs-uri-stem cs-uri-query s-port\n2026-11-22 GET /api/outfits/ f=22 443',
  'words before JSON': 'app-1  | {"req":{"method":"GET","url":"/api/outfits/?f=23"}}',
  'a user agent like a request line':
    '{"request_method":"GET","request_uri":"/api/outfits/?f=24","http_user_agent":"GET /api/evil"}',
  'a user agent before the request line':
    '{"ua":"GET /api/evil HTTP/1.1","request":"GET /api/outfits/?f=25 HTTP/1.1"}',
  'a message like a request': '{"method":"GET","path":"/api/outfits/?f=26","msg":"see POST /x"}',
  'a request of the server itself':
    '{"req":{"method":"GET","url":"/api/outfits/?f=27"},"res":{},"upstream":{"method":"POST","url":"/up"}}',
  'the file of the log':
    '{"path":"/api/outfits/?f=28","method":"GET","log":{"file":{"path":"/var/log/x"}}}',
  'Elastic Common Schema in levels':
    '{"log":{"file":{"path":"/x"}},"http":{"request":{"method":"GET"}},"url":{"path":"/api/outfits/?f=29"}}',
  'a request line as message': '{"level":"info","message":"GET /api/outfits/?f=30 HTTP/1.1"}',
};

let legacy: LegacyService;
let gateway: ListeningGateway;
beforeAll(async () => {
  legacy = await startLegacyService(records());
  gateway = await openBefore('PostgreSQL', legacy.base, { LEGACY_MODE: 'off' });
});
afterAll(async () => {
  await gateway.close();
  await legacy.close();
});
beforeEach(() => {
  legacy.fault = undefined;
  legacy.requests.length = 0;
});

/** With all accepted that was decided. @param input of `-` */
const replay = (args: readonly string[], input = '') => {
  const sides = ['--legacy', legacy.base, '--against', gateway.base, '--rate', '1000'];
  const decided = accept('previous-page-1', 'unknown-ordering');
  return compare(replayCommand, [...sides, ...decided, ...args], {}, input);
};
const first = line('/api/outfits/?page=1');
const asked = () => legacy.requests.map(({ method, target }) => `${method} ${target}`).sort();
test('reads a log in each form that servers write', async () => {
  const texts = Object.values(forms);
  // What #Fields: says holds to the end of a file.
  const files = texts.map((text, index) => save(`${index}.log`, `${text}\n`));
  await replay(files);
  const targets = texts.map((_text, index) => `GET /api/outfits/?f=${index}`);
  expect(asked()).toEqual(targets.sort());
});

test.each<[string, string | Buffer, string]>([
  ['another format', 'a\nb\n', 'None of the 2 lines has a request in a format that can be read'],
  ['other paths', line('/x'), 'No GET request of the 1 lines has a path that begins with /api/'],
])('says of a log with %s why nothing is compared', async (_name, content, sentence) => {
  const { code, stderr } = await replay([save('access.log', content)]);
  expect(code).toBe(2);
  expect(stderr).toContain(sentence);
});

test('prints no control character of a log, and not all of a long target', async () => {
  legacy.fault = 'errors';
  const input = [line('/api/x\u009b2J'), line(`/api/outfits/?x=${'a'.repeat(3_000)}`), '\u001b[2J'];
  const { stdout, stderr } = await replay(
    ['-', '--wait', '0'],
    Buffer.from(input.join('\n'), 'latin1').toString('latin1'),
  );
  expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]/u);
  expect(stdout + stderr).not.toMatch(/a{1000}/);
});

test('replays what comes before the end of a cut file, and other files, and ends with code 2', async () => {
  const cut = save('access.log.gz', gzipSync(`${first}\n`.repeat(50_000)).subarray(0, -40));
  const other = save('access.log', line('/api/outfits/?page=2'));
  const found = await replay([cut, other]);
  expect(found.code).toBe(2);
  expect(found.stderr).toContain('access.log.gz cannot be read (unexpected end of file)');
  expect(asked()).toEqual(['GET /api/outfits/?page=1', 'GET /api/outfits/?page=2']);
});

test('asks each distinct request once, and says how often it was asked', async () => {
  const second = line('/api/outfits/?page=2');
  const log = save('access.log', `${[first, second, first, first, second].join('\n')}\n`);
  const more = save('access.log.1.gz', gzipSync(`${second}\n${line('/api/outfits/', 'HEAD')}\n`));
  const found = await replay([log, more]);
  expect(found).toMatchObject({ code: 0, stderr: '' });
  expect(found.stdout).toMatch(
    /^Accepted: .+\n3 requests, asked 7 times, compared: nothing differs but what was accepted\.\n$/,
  );
  const pages = ['GET /api/outfits/?page=1', 'GET /api/outfits/?page=2'];
  expect(asked()).toEqual([...pages, 'HEAD /api/outfits/']);
  const accepted = [{ kind: 'previous-page-1', times: 3 }];
  expect(found.report).toMatchObject({ requests: 7, distinct: 3, accepted });
});

test('asks in exactly the words of the log, whatever they are', async () => {
  const targets = [
    '/api/outfits/?a=%zz',
    '/api/outfits/?a=%C3%28&page=1',
    '/api/./outfits/../outfits/',
    '/api/outfits/?a=[b]|{c}^`',
    '/api/outfits/?a=%20+',
    '/api//outfits/',
  ];
  await replay(['-'], targets.map((target) => `${line(target)}\n`).join(''));
  expect([...new Set(asked())]).toEqual(targets.map((target) => `GET ${target}`).sort());
});

test('never sends what could write, and says what it left out', async () => {
  const lines = [
    ...['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map((method) => line('/api/outfits/', method)),
    line('/static/app.js'),
    'no request at all',
    first,
  ];
  const found = await replay(['-'], lines.join('\n'));
  expect(asked()).toEqual(['GET /api/outfits/?page=1']);
  expect(found.stdout).toMatch(
    /^Left out: 5 other methods, 1 other paths, 1 lines without a request that can be sent again\.\n/,
  );
  expect(found.stderr).toBe('-:7 has no request that can be sent again.\n');
});

test('reports differences by kind, weighed by how often apps asked', async () => {
  legacy.fault = 'wrong count';
  const log = `${first}\n`.repeat(7) + line('/api/outfits/?page=abc');
  const found = await replay(['-'], log);
  expect(found).toMatchObject({ code: 1, report: { differences: [{ kind: 'value', times: 7 }] } });
  expect(await replay(['-', ...accept('value')], log)).toMatchObject({ code: 0 });
  expect(await replay(['-', ...accept('value:count')], log)).toMatchObject({ code: 0 });
  expect(await replay(['-', ...accept('value:next')], log)).toMatchObject({ code: 1 });
});

test.each([
  ['closing early', 'did not answer'],
  ['cut short', 'did not answer'],
  ['hanging', 'did not answer (no complete answer in 0.3 s)'],
  ['errors', 'The status is 500 in the source, 200 here'],
] as const)('a service that is failing (%s) differs in status', async (fault, sentence) => {
  legacy.fault = fault;
  const limit = fault === 'hanging' ? ['--timeout', '300ms'] : [];
  const found = await replay(['-', ...limit], first);
  expect(found).toMatchObject({ code: 1, report: { differences: [{ kind: 'status', times: 1 }] } });
  expect(found.stdout).toContain(sentence);
});

test('a service that has gone away ends it, with a report of what was found', async () => {
  legacy.fault = 'closing early';
  const lines = Array.from({ length: 300 }, (_, index) => line(`/api/outfits/?f=${index}`));
  const many = ['-', '--concurrency', '32'];
  const found = await replay(many, lines.join('\n'));
  expect(found).toMatchObject({ code: 2, named: ['status unreachable'] });
  expect(found.stderr).toContain('Not everything could be compared: 50 requests in a row');
  expect(found.report).toMatchObject({ same: false, broken: expect.stringMatching(/^50 /) });
  expect(new Set(asked()).size).toBeLessThan(150);
  // Also when that alone is forgiven.
  const forgiven = await replay([...many, ...accept('status')], lines.join('\n'));
  expect(forgiven.code).toBe(2);
});

test('does not compare the old service with itself', async () => {
  const shadow = await openBefore('PostgreSQL', legacy.base, { LEGACY_MODE: 'shadow' });
  onTestFinished(() => shadow.close());
  const found = await replay(['-', '--against', shadow.base], line('/api/outfits/'));
  expect(found).toMatchObject({ code: 2, stdout: '', report: null });
  expect(found.stderr).toMatch(/^http\S+ passes requests on to the old service, .*LEGACY_MODE=off/);
});

test.each([
  ['between two requests', [first, line('/api/outfits/?page=2')], ['--rate', '0.1']],
  ['before it asks again', [first], ['--wait', '3600s']],
  ['before it asks again, which is no faster than its rate', [first], ['--rate', '0.1']],
])('Ctrl-C %s says so and exits with 130', async (_when, lines, args) => {
  legacy.fault = 'wrong count';
  const log = save('interrupted.log', lines.join('\n'));
  const sides = ['--legacy', legacy.base, '--against', gateway.base];
  const running = startCommand(replayCommand, [log, ...sides, ...args]);
  await expect.poll(() => legacy.requests.length).toBeGreaterThan(0);
  // As long as it would take if it waited for nothing.
  await replay(['-'], lines.join('\n'));
  running.stop();
  expect(await running.ended).toBe(130);
  expect(running.stderr.text).toBe('Interrupted.\n');
});

test('sends headers to the side they are for only, and the origin of --origin', async () => {
  const origin = 'https://app.test';
  const sent = ['--header', 'x-shop: 7', '--against-header', 'x-ours: 8', '--origin', origin];
  await replay(['-', ...sent], first);
  const [{ headers } = { headers: {} }] = legacy.requests;
  expect(headers).toMatchObject({ 'x-shop': '7', accept: 'application/json', origin });
  expect(headers).not.toHaveProperty('x-ours');
});

test.each([
  [[], '', 'No GET request of the 0 lines has a path that begins with /api/.'],
  [['--prefix', '/v2/'], line('/api/outfits/'), 'begins with /v2/.'],
  [['/nowhere.log'], '', '/nowhere.log cannot be read'],
  [
    ['--accept', 'counts'],
    '',
    '--accept is "counts", but it must be one of status, header, value,',
  ],
  [['--against-header', 'x'], '', '--header is not of the form'],
  [['--legacy', 'http://127.0.0.1:1/api/'], '', 'without path'],
])('%j ends in a sentence', async (args, input, sentence) => {
  const found = await replay(['-', ...args], input);
  expect(found).toMatchObject({ code: 2, stdout: '' });
  expect(found.stderr).toContain(sentence);
  expect(found.stderr.trim().split('\n')).toHaveLength(1);
});
