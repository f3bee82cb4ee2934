// Each rule of a request, over HTTP, REST where it applies, server-sent events, and WebSockets.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { makeFolder } from '../support/cli/folder.ts';
import { openForTest, outfitId } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { baseOfApp, openStream } from '../support/http/event-stream.ts';
import { openSocket } from '../support/http/socket.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { startWebhook } from '../support/http/webhook.ts';

const rows = [...generateOutfits({ outfits: 5, users: 2 })];
const [{ id, userId }] = rows as [(typeof rows)[0]];
const imageKey = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

type Headers = Record<string, string>;

interface Asked {
  readonly query: string;
  /** The same over REST: a body to POST, or null to read; undefined: REST has none. */
  readonly rest?: object | null;
}

/** What a client gets: a code, or `taken`. Of REST its status, of a connection that ends its close code. */
type Ask = (asked: Asked) => Promise<unknown>;
type Connect = (base: string, headers: Headers) => Promise<Ask>;

const codeOf = ({ errors }: { errors?: { extensions: { code: string } }[] }) =>
  errors?.[0]?.extensions.code ?? 'taken';

const clients: Record<'http' | 'events' | 'socket' | 'rest', Connect> = {
  http:
    async (base, headers) =>
    async ({ query }) => {
      const method = 'POST';
      const body = JSON.stringify({ query });
      const sent = { method, headers: { ...headers, 'content-type': 'application/json' }, body };
      return codeOf(await (await fetch(`${base}/graphql`, sent)).json());
    },
  events:
    async (base, headers) =>
    async ({ query }) => {
      const stream = await openStream(base, query, { headers });
      const isStream = /event-stream/.test(String(stream.response.headers['content-type']));
      if (isStream) return codeOf((await stream.next()).data);
      await stream.ended;
      return codeOf(JSON.parse(stream.text()));
    },
  /** All on one connection. */
  socket: async (base, headers) => {
    const opened = await openSocket(base, headers).catch(({ message }: Error) => message);
    if (typeof opened === 'string') return async () => codeOf(JSON.parse(opened.slice(4)));
    const { send, subscribe, closed, next } = opened;
    send({ type: 'connection_init' });
    await next();
    const ended = closed.then(([code]) => code);
    const answer = async (): Promise<string> => {
      const { type, payload } = await next();
      // Of the operation before.
      if (type === 'complete') return answer();
      return codeOf({ errors: payload.errors ?? (Array.isArray(payload) ? payload : undefined) });
    };
    let id = 0;
    return ({ query }) => {
      subscribe(`${id++}`, query);
      return Promise.race([ended, answer()]);
    };
  },
  rest:
    async (base, headers) =>
    async ({ rest }) => {
      const sent = rest ? { method: 'POST', body: JSON.stringify(rest) } : {};
      const type = rest ? { 'content-type': 'application/json' } : {};
      return (await fetch(`${base}/api/outfits/`, { ...sent, headers: { ...headers, ...type } }))
        .status;
    },
};

const create = {
  query: `mutation { createOutfit(input: { imageKey: "${imageKey}" }) { outfit { id } } }`,
  rest: { image_key: imageKey },
};
const read = { query: '{ outfits { count } }', rest: null };
const update = {
  query: `mutation { updateOutfit(id: "${outfitId(id)}", input: { title: "New" }) { outfit { id } } }`,
};
const nested = (levels: number): string =>
  levels ? `user { outfits(pageSize: 1) { results { ${nested(levels - 1)} } } }` : 'id';
const costly = {
  query:
    '{ outfits(pageSize: 100) { results { user { outfits(pageSize: 100) { results { likes } } } } } }',
};
const deep = { query: `{ outfit(databaseId: ${id}) { ${nested(9)} } }` };
const browser = { origin: 'https://other.test', cookie: 'sessionid=ann' };

/** Each rule: settings, who asks what, and what clients get. */
const rules: [
  rule: string,
  settings: Headers,
  asked: Asked,
  headers: () => Headers | Promise<Headers>,
  expected: { http: unknown; events?: unknown; socket?: unknown; rest?: unknown },
][] = [
  ['no rule', {}, read, () => ({}), { http: 'taken', rest: 200 }],
  [
    'trusted documents only',
    { TRUSTED_DOCUMENTS_ONLY: 'on' },
    read,
    () => ({}),
    { http: 'DOCUMENT_NOT_TRUSTED', rest: 200 },
  ],
  [
    'a rate limit that is used up',
    { RATE_LIMIT: '3/hour' },
    read,
    () => ({}),
    { http: 'TOO_MANY_REQUESTS', rest: 429 },
  ],
  ['a document that costs too much', {}, costly, () => ({}), { http: 'QUERY_TOO_COSTLY' }],
  ['a document that is too deep', {}, deep, () => ({}), { http: 'QUERY_TOO_DEEP' }],
  ['a mutation by a viewer', {}, create, () => signIn(userId), { http: 'taken', rest: 201 }],
  ['a mutation without a sign-in', {}, create, () => ({}), { http: 'UNAUTHENTICATED', rest: 401 }],
  [
    'a mutation while writes are off',
    { WRITES: 'off' },
    create,
    () => signIn(userId),
    { http: 'WRITES_OFF', rest: 503 },
  ],
  [
    'an update of the outfit of another',
    {},
    update,
    () => signIn(userId + 1),
    { http: 'FORBIDDEN' },
  ],
  [
    'an update by staff',
    {},
    update,
    () => signIn(userId + 1, 60, { staff: true }),
    { http: 'taken' },
  ],
  [
    'a credential that has expired',
    {},
    read,
    () => signIn(userId, -10),
    { http: 'UNAUTHENTICATED', rest: 401 },
  ],
  [
    'a cookie on a write from another page',
    {},
    create,
    () => browser,
    { http: 'FORBIDDEN', rest: 403 },
  ],
  [
    'a cookie on a write from a page that is named',
    { CORS_ORIGINS: 'https://other.test' },
    create,
    () => browser,
    { http: 'taken', rest: 201 },
  ],
];

test.each(rules)(
  '%s holds over each transport',
  async (_name, settings, asked, headers, expected) => {
    const webhook = await startWebhook();
    onTestFinished(() => webhook.close());
    webhook.users.set('sessionid=ann', userId);
    const file = join(makeFolder(onTestFinished), 'documents.json');
    writeFileSync(file, JSON.stringify({ other: '{ __typename }' }));
    const { app } = await openForTest('PostgreSQL', rows, {
      ...{ AUTH_JWT_SECRET: secret, AUTH_STAFF_CLAIM: 'staff', TRUSTED_DOCUMENTS: file },
      ...{ AUTH_WEBHOOK_URL: webhook.url, AUTH_COOKIES: 'sessionid', TRUST_PROXY: '127.0.0.1' },
      ...settings,
    });
    const base = await baseOfApp(app);
    const transports = Object.entries(clients) as [keyof typeof clients, Connect][];
    for (const [index, [transport, connect]] of transports.entries()) {
      const { http, [transport]: own = transport === 'rest' ? undefined : http } = expected;
      if (own === undefined) continue;
      // Each is counted by itself.
      const address = `10.0.0.${index}`;
      const ask = await connect(base, { ...(await headers()), 'x-forwarded-for': address });
      let code = await ask(asked);
      if (settings['RATE_LIMIT']) {
        // It is an operation that is refused, not a handshake.
        expect(code).toBe(transport === 'rest' ? 200 : 'taken');
        for (let time = 0; time < 3; time++) code = await ask(asked);
      }
      expect({ [transport]: code }).toEqual({ [transport]: own });
    }
  },
);

test.each(['events', 'socket'] as const)(
  'a live answer over %s that ends for another client before it is there is TOO_MANY_STREAMS',
  async (transport) => {
    let release = () => {};
    const gate = new Promise<null>((settle) => {
      release = () => settle(null);
    });
    const schema = extend('extend type Outfit { slow: String }', { 'Outfit.slow': () => gate });
    const settings = { MAX_STREAMS: '2', TRUST_PROXY: '127.0.0.1' };
    const gateway = await openForTest('PostgreSQL', rows, settings, { schema });
    onTestFinished(release);
    const base = await baseOfApp(gateway.app);
    const ask = async (query: string, address: string) =>
      (await clients[transport](base, { 'x-forwarded-for': address }))({ query });
    const slow = `subscription { outfit(databaseId: ${id}) { slow } }`;
    const refused = [ask(slow, '1.1.1.1'), ask(slow, '1.1.1.1')];
    const quick = `subscription { outfit(databaseId: ${id}) { likes } }`;
    await expect.poll(() => ask(quick, '1.1.1.1')).toBe('TOO_MANY_STREAMS');
    expect(await ask(quick, '1.1.1.2')).toBe('taken');
    expect(await Promise.race(refused)).toBe('TOO_MANY_STREAMS');
  },
);
