// Clients of apps without a browser: their stores, documents by id, and the code of docs/live.md.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { type DocumentNode, parse } from 'graphql';
import {
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { WebSocket } from 'ws';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { run } from '../support/cli/process.ts';
import { examples, installExamples, npm } from '../support/examples.ts';
import { openGateway, outfitId, type TestGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 12, users: 3 })];
const byNumber = parse('query ByNumber($number: Int) { outfit(databaseId: $number) { id likes } }');

/** What has no id of its own; the last one asks less of the viewer than the one before. */
const otherDocuments = [
  '{ outfits(page: 1) { count results { id title } } }',
  '{ outfits(page: 1, ordering: ID_ASC) { pageCount results { id title } } }',
  '{ viewer { user { id username } } }',
  '{ viewer { __typename } }',
].map((text) => parse(text));

/** A module of an app: its packages are not installed where types are checked. */
// biome-ignore lint/suspicious/noExplicitAny: as above
const load = (path: string): Promise<any> => import(/* @vite-ignore */ join(examples, path));

beforeAll(async () => {
  await installExamples();
  await npm(['run', 'generate']);
  // Where shared/gateway.ts finds the token.
  const token = String((await signIn(1))['authorization']).replace('Bearer ', '');
  vi.stubGlobal('location', { hash: `#token=${token}` });
  vi.stubGlobal('WebSocket', WebSocket);
}, 300_000);

/** A gateway that listens, and what it has been asked. */
interface Listening extends TestGateway {
  readonly url: string;
  readonly requests: string[];
  /** All connections. */
  readonly sockets: Set<Socket>;
}

async function listen(environment: Record<string, string> = {}): Promise<Listening> {
  const settings = { AUTH_JWT_SECRET: secret, ...environment };
  const gateway = await openGateway('PostgreSQL', rows, settings);
  const url = `${await baseOfApp(gateway.app)}/graphql`;
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  gateway.app.server.on('connection', (socket) => sockets.add(socket));
  gateway.app.server.on('request', ({ method }) => requests.push(String(method)));
  return { ...gateway, requests, sockets, url };
}

let gateway: Listening;
/** The outfits in the order of the list. */
let ids: string[];
const warnings: unknown[][] = [];
beforeEach(async () => {
  for (const method of ['warn', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((...args) => void warnings.push(args));
  }
  gateway = await listen();
  const { data } = await gateway.post('{ outfitConnection { nodes { id } } }');
  ids = (data as { outfitConnection: { nodes: { id: string }[] } }).outfitConnection.nodes.map(
    ({ id }) => id,
  );
});
afterEach(async () => {
  await gateway.close();
  vi.restoreAllMocks();
  // The clients say there what an answer lacks that their stores want.
  expect(warnings.splice(0)).toEqual([]);
});

type Ask = (query: DocumentNode, variables?: object) => Promise<Record<string, unknown>>;
const stores: Record<string, () => Promise<Ask>> = {
  'Apollo Client': async () => {
    const client = (await load('apollo/client.ts')).createApollo(gateway.url);
    return async (query, variables = {}) => (await client.query({ query, variables })).data;
  },
  'urql with graphcache': async () => {
    const client = (await load('urql/client.ts')).createUrql(gateway.url);
    return async (query, variables = {}) => (await client.query(query, variables).toPromise()).data;
  },
};

describe.each(Object.entries(stores))('the store of %s', (_name, open) => {
  test('has an outfit that a list has brought, and asks once for another', async () => {
    const ask = await open();
    const { outfitsDocument, outfitDocument } = await load('shared/documents.ts');
    await ask(outfitsDocument, { first: 3 });
    const asked = gateway.requests.length;
    expect(await ask(outfitDocument, { id: ids[2] })).toMatchObject({ outfit: { id: ids[2] } });
    expect(gateway.requests.length).toBe(asked);
    for (let time = 0; time < 2; time += 1) {
      expect(await ask(outfitDocument, { id: outfitId(99) })).toMatchObject({ outfit: null });
      const numbered = { outfit: { id: outfitId(3) } };
      expect(await ask(byNumber, { number: 3 })).toMatchObject(numbered);
      expect(gateway.requests.length).toBe(asked + 2);
    }
  });

  test('keeps numbered pages, and all that is asked of the viewer', async () => {
    const ask = await open();
    for (const query of otherDocuments) await ask(query);
    const asked = gateway.requests.length;
    for (const query of otherDocuments) {
      const { viewer, outfits } = await ask(query);
      expect(viewer ?? outfits).toBeTruthy();
    }
    expect(gateway.requests.length).toBe(asked);
  });
});

describe('documents by id', () => {
  const trust = async (file: string) => {
    const settings = { TRUSTED_DOCUMENTS: join(examples, file), TRUSTED_DOCUMENTS_ONLY: 'on' };
    const trusted = await listen(settings);
    onTestFinished(() => trusted.close());
    return trusted;
  };

  test('Apollo Client registers a query by its hash, and then asks by GET', async () => {
    const { createApolloWithHashes } = await load('apollo/persisted.ts');
    const { outfitDocument: query } = await load('shared/documents.ts');
    const client = createApolloWithHashes(gateway.url);
    for (const id of ids.slice(0, 3)) {
      expect((await client.query({ query, variables: { id } })).data.outfit.id).toBe(id);
    }
    expect(gateway.requests).toEqual(['GET', 'POST', 'GET', 'GET']);
  });

  test('urql registers a query by its hash, all by GET', async () => {
    const { createUrqlWithHashes } = await load('urql/persisted.ts');
    const { outfitDocument } = await load('shared/documents.ts');
    const client = createUrqlWithHashes(gateway.url);
    for (const id of ids.slice(0, 3)) {
      const { data } = await client.query(outfitDocument, { id }).toPromise();
      expect(data.outfit.id).toBe(id);
    }
    expect(gateway.requests).toEqual(['GET', 'GET', 'GET', 'GET']);
  });

  test('those of the client preset run where only trusted ones are run', async () => {
    const { createApolloWithTrustedDocuments } = await load('apollo/persisted.ts');
    const trusted = await trust('shared/gql/persisted-documents.json');
    const { outfitsDocument: query } = await load('shared/documents.ts');
    const client = createApolloWithTrustedDocuments(trusted.url);
    const { data } = await client.query({ query, variables: { first: 4 } });
    expect(data.outfitConnection.edges).toHaveLength(4);
    expect(trusted.requests).toEqual(['POST']);
    // The stored documents ask for __typename, or else nothing would be known by its id.
    expect(client.cache.extract()).toHaveProperty([`Outfit:${ids[0]}`]);
  });

  test('those of the compiler of Relay run where only trusted ones are run', async () => {
    // The compiler writes only what has changed.
    rmSync(join(examples, 'relay/__persisted__'), { recursive: true, force: true });
    mkdirSync(join(examples, 'relay/__persisted__'));
    const file = 'relay/persisted-queries.json';
    writeFileSync(join(examples, file), '{}');
    await npm(['exec', 'relay-compiler', 'relay.persisted.json']);
    const trusted = await trust(file);
    const texts: [string, string][] = Object.entries(
      JSON.parse(readFileSync(join(examples, file), 'utf8')),
    );
    expect(texts).toHaveLength(8);
    const [documentId] = texts.find(([, text]) => text.startsWith('query OutfitsQuery')) ?? [];
    const url = '/graphql';
    const response = await trusted.app.inject({ method: 'POST', url, payload: { documentId } });
    expect(response.json().data.outfitConnection.edges).toHaveLength(8);
    const [id] = texts.find(([, text]) => text.startsWith('subscription')) ?? [];
    const { createRelay } = await load('relay/environment.ts');
    const operation = {
      id,
      text: null,
      operationKind: 'subscription',
      name: 'Count',
      metadata: {},
    };
    const network = createRelay(`${trusted.url}`).getNetwork();
    const live = await new Promise((resolve, reject) => {
      const { unsubscribe } = network.execute(operation, {}, {}).subscribe({
        next: (answer: unknown) => {
          resolve(answer);
          unsubscribe();
        },
        error: reject,
      });
    });
    expect(live).toEqual({ data: { outfits: { count: 12 } } });
  });
});

describe('live answers are read by the code of docs/live.md', () => {
  const text = readFileSync(new URL('../../docs/live.md', import.meta.url), 'utf8');
  const blockOf = (name: string) => {
    const [, code = expect.fail()] =
      new RegExp(`\`\`\`js ${name}\\n(.*?)\`\`\``, 's').exec(text) ?? [];
    return code;
  };
  const setupOf = (name: string) => blockOf(name) + blockOf('query').split('client.subscribe(')[0];
  const codeOf = (name: string) => blockOf(name) + blockOf('query');
  const shows = `.subscribe({ next: ({ data }) => console.log(JSON.stringify(data)) });`;
  const relay = `const fetchQuery = undefined; ${blockOf('relay')}
    const operation = { operationKind: 'subscription', name: 'live', text: query, metadata: {} };
    environment.getNetwork().execute(operation, {})${shows}`;

  test.each([
    ['graphql-sse', codeOf('graphql-sse')],
    ['graphql-ws', codeOf('graphql-ws')],
    ['urql over server-sent events', setupOf('graphql-sse') + blockOf('urql')],
    ['urql over a WebSocket', setupOf('graphql-ws') + blockOf('urql')],
    ['Apollo Client over a WebSocket', setupOf('graphql-ws') + blockOf('apollo')],
    ['Relay over server-sent events', setupOf('graphql-sse') + relay],
    ['Relay over a WebSocket', setupOf('graphql-ws') + relay],
  ])('with %s: a change is shown, also behind a lost connection', async (_name, code) => {
    const snippet =
      `import { WebSocket as Socket } from 'ws'; globalThis.WebSocket = Socket; ${code}`
        .replaceAll('http://localhost:4000/graphql', gateway.url)
        .replaceAll('ws://localhost:4000/graphql', gateway.url.replace('http', 'ws'));
    const reader = run(['--input-type=module', '--eval', snippet], {}, examples);
    await reader.until(new RegExp(`^\\{"outfits":\\{.*"count":${rows.length},`, 'm'));
    await gateway.database.pool.query("UPDATE outfits SET title = 'As in the documents'");
    await reader.until(/"title":"As in the documents"/);
    for (const socket of gateway.sockets) socket.destroy();
    await gateway.database.pool.query("UPDATE outfits SET title = 'Again'");
    await reader.until(/"title":"Again"/);
    expect(reader.errors()).toBe('');
    reader.child.kill();
  });
});
