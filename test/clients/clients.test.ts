// The clients that apps use, with the code of docs/clients.md, against a gateway that listens.
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { ApolloClient, ObservableQuery } from '@apollo/client';
import type { Client, OperationResult } from '@urql/core';
import { type DocumentNode, parse } from 'graphql';
import type { Environment } from 'relay-runtime';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { run } from '../support/cli/process.ts';
import { openGateway, outfitId, type TestGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { type ClientApp, load as loadPackage, makeClientApp } from './app.ts';

const rows = [...generateOutfits({ outfits: 12, users: 3 })];

interface Outfit {
  readonly id: string;
  readonly likes: number;
  readonly viewerHasLiked: boolean;
}
interface Outfits {
  readonly outfitConnection: {
    readonly totalCount: number;
    readonly edges: readonly { readonly node: Outfit }[];
    readonly pageInfo: { readonly endCursor: string; readonly hasNextPage: boolean };
  };
}

const byNumber = parse('query ByNumber($number: Int) { outfit(databaseId: $number) { id likes } }');

/** What has no id of its own; the last one asks less of the viewer than the one before. */
const otherDocuments = [
  '{ outfits(page: 1) { count results { id title } } }',
  '{ outfits(page: 1, ordering: ID_ASC) { pageCount results { id title } } }',
  '{ viewer { user { id username } } }',
  '{ viewer { __typename } }',
].map((text) => parse(text));

let app: ClientApp;
beforeAll(async () => {
  app = await makeClientApp();
}, 300_000);
afterAll(() => app.remove());

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
let token: string;
/** The outfits in the order of the list. */
let ids: string[];
const warnings: unknown[][] = [];
beforeEach(async () => {
  for (const method of ['warn', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((...args) => void warnings.push(args));
  }
  gateway = await listen();
  token = String((await signIn(1))['authorization']).replace('Bearer ', '');
  const list = '{ outfitConnection(ordering: LIKE_COUNT_DESC) { edges { node { id } } } }';
  const { data } = (await gateway.post(list)) as { data: Outfits };
  ids = data.outfitConnection.edges.map(({ node }) => node.id);
});
afterEach(async () => {
  await gateway.close();
  vi.restoreAllMocks();
  // The clients say there what an answer lacks that their stores want.
  expect(warnings.splice(0)).toEqual([]);
});

const nodesOf = (data: Outfits | undefined) =>
  data?.outfitConnection.edges.map(({ node }) => node) ?? [];
const idsOf = (data: Outfits | undefined) => nodesOf(data).map(({ id }) => id);

/** Somebody else likes an outfit. */
async function likeAsAnother(id: string): Promise<void> {
  const mutation = `mutation { likeOutfit(id: "${id}") { outfit { likes } } }`;
  expect(await gateway.post(mutation, {}, await signIn(2))).not.toHaveProperty('errors');
}

interface ApolloModule {
  createApollo(url: string, token?: string): ApolloClient;
  watchOutfits(client: ApolloClient, first: number): ObservableQuery<Outfits>;
  loadMore(client: ApolloClient, list: ObservableQuery<Outfits>): Promise<void>;
  like(client: ApolloClient, id: string): Promise<void>;
}
interface UrqlModule {
  createUrql(url: string, token?: string): Client;
  like(client: Client, id: string): Promise<void>;
}
const loadApollo = async () => (await app.load('src/apollo.ts')) as unknown as ApolloModule;
const loadUrql = async () => (await app.load('src/urql.ts')) as unknown as UrqlModule;
const documents = async () => (await app.load('src/documents.ts')) as Record<string, never>;

type Ask = (query: DocumentNode, variables?: object) => Promise<Record<string, unknown>>;
const stores: Record<string, () => Promise<Ask>> = {
  'Apollo Client': async () => {
    const client = (await loadApollo()).createApollo(gateway.url, token);
    return async (query, variables = {}) =>
      (await client.query<Record<string, unknown>>({ query, variables })).data ?? expect.fail();
  },
  'urql with graphcache': async () => {
    const client = (await loadUrql()).createUrql(gateway.url, token);
    return async (query, variables = {}) => (await client.query(query, variables).toPromise()).data;
  },
};

describe.each(Object.entries(stores))('the store of %s', (_name, open) => {
  test('has an outfit that a list has brought, and is asked once for another', async () => {
    const ask = await open();
    const { outfitsDocument = expect.fail(), outfitDocument = expect.fail() } = await documents();
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

describe('Apollo Client', () => {
  test('joins the ranges of a list, and a like updates the list and the heart', async () => {
    const { createApollo, watchOutfits, loadMore, like } = await loadApollo();
    const client = createApollo(gateway.url, token);
    const list = watchOutfits(client, 5);
    let shown: Outfits | undefined;
    const subscription = list.subscribe(({ data }) => {
      shown = data as Outfits | undefined;
    });
    await vi.waitFor(() => expect(idsOf(shown)).toEqual(ids.slice(0, 5)), 10_000);
    await loadMore(client, list);
    await loadMore(client, list);
    await vi.waitFor(() => expect(idsOf(shown)).toEqual(ids), 10_000);
    expect(shown?.outfitConnection.totalCount).toBe(12);

    const before = nodesOf(shown)[7] ?? expect.fail();
    expect(before.viewerHasLiked).toBe(false);
    const asked = gateway.requests.length;
    await like(client, before.id);
    await vi.waitFor(() => {
      expect(nodesOf(shown)[7]).toMatchObject({ likes: before.likes + 1, viewerHasLiked: true });
    }, 10_000);
    expect(idsOf(shown)).toEqual(ids);
    expect(gateway.requests.length).toBe(asked + 1);
    subscription.unsubscribe();
  });

  test('registers a query by its hash, and then asks by GET', async () => {
    const { createApolloWithHashes } = (await app.load('src/apollo-hashes.ts')) as {
      createApolloWithHashes(url: string): ApolloClient;
    };
    const { outfitDocument = expect.fail() } = await documents();
    const client = createApolloWithHashes(gateway.url);
    for (const id of ids.slice(0, 3)) {
      const { data } = await client.query<{ outfit: Outfit }>({
        query: outfitDocument,
        variables: { id },
      });
      expect(data?.outfit.id).toBe(id);
    }
    expect(gateway.requests).toEqual(['GET', 'POST', 'GET', 'GET']);
  });

  test('runs the documents of the client preset where only trusted ones are run', async () => {
    const { createApolloWithTrustedDocuments } = (await app.load('src/apollo-trusted.ts')) as {
      createApolloWithTrustedDocuments(url: string): ApolloClient;
    };
    const trusted = await listen({
      TRUSTED_DOCUMENTS: join(app.folder, 'src/gql/persisted-documents.json'),
      TRUSTED_DOCUMENTS_ONLY: 'on',
    });
    onTestFinished(() => trusted.close());
    const { outfitsDocument = expect.fail() } = await documents();
    const client = createApolloWithTrustedDocuments(trusted.url);
    const variables = { first: 4 };
    const { data } = await client.query<Outfits>({ query: outfitsDocument, variables });
    expect(idsOf(data)).toEqual(ids.slice(0, 4));
    expect(trusted.requests).toEqual(['POST']);
    // The stored documents ask for __typename, or else nothing would be known by its id.
    expect(client.cache.extract()).toHaveProperty([`Outfit:${ids[0]}`]);
  });
});

describe('urql with graphcache', () => {
  test('joins the ranges of a list, and a like updates the list and the heart', async () => {
    const { createUrql, like } = await loadUrql();
    const { outfitsDocument = expect.fail() } = await documents();
    const client = createUrql(gateway.url, token);
    const first = await client.query<Outfits>(outfitsDocument, { first: 5 }).toPromise();
    expect(idsOf(first.data)).toEqual(ids.slice(0, 5));
    const after = first.data?.outfitConnection.pageInfo.endCursor;
    let shown: OperationResult<Outfits> | undefined;
    const subscription = client
      .query<Outfits>(outfitsDocument, { first: 5, after })
      .subscribe((result) => {
        shown = result;
      });
    await vi.waitFor(() => expect(idsOf(shown?.data)).toEqual(ids.slice(0, 10)), 10_000);

    const before = nodesOf(shown?.data)[2] ?? expect.fail();
    const asked = gateway.requests.length;
    await like(client, before.id);
    await vi.waitFor(() => {
      const after = nodesOf(shown?.data)[2];
      expect(after).toMatchObject({ likes: before.likes + 1, viewerHasLiked: true });
    }, 10_000);
    expect(gateway.requests.length).toBe(asked + 1);
    subscription.unsubscribe();
  });

  test('is told what is wrong with an input', async () => {
    const client = (await loadUrql()).createUrql(gateway.url, token);
    const wrong =
      'mutation { createOutfit(input: {}) { outfit { id } errors { field messages } } }';
    const { data } = await client.mutation(wrong, {}).toPromise();
    expect(data.createOutfit.errors).toMatchObject([{ field: 'imageKey' }]);
  });
});

describe('Relay', () => {
  interface RelayModule {
    createRelay(url: string, token?: string): Environment;
    loadList(environment: Environment): Promise<unknown>;
    like(environment: Environment, id: string): Promise<void>;
    readonly listQuery: never;
    readonly listFragment: never;
    readonly cardFragment: never;
  }
  const load = async () => (await app.load('src/relay.ts')) as unknown as RelayModule;
  type Runtime = typeof import('relay-runtime');
  let createOperationDescriptor: Runtime['createOperationDescriptor'];
  let fetchQuery: Runtime['fetchQuery'];
  let getRequest: Runtime['getRequest'];
  let getSingularSelector: Runtime['getSingularSelector'];
  beforeAll(() => {
    ({ createOperationDescriptor, fetchQuery, getRequest, getSingularSelector } =
      loadPackage('relay-runtime'));
  });
  const artifact = async (name: string) =>
    (await app.load(`src/__generated__/${name}.graphql.ts`))['default'] as never;

  /** What components with the fragments of the page would show. */
  function read(environment: Environment, relay: RelayModule) {
    const operation = createOperationDescriptor(getRequest(relay.listQuery), {});
    const lookUp = (fragment: never, reference: unknown) =>
      environment.lookup(getSingularSelector(fragment, reference) ?? expect.fail()).data;
    const list = lookUp(relay.listFragment, environment.lookup(operation.fragment).data) as never;
    const cards = nodesOf(list).map(
      (node) => ({ id: node.id, ...(lookUp(relay.cardFragment, node) as object) }) as Outfit,
    );
    const { pageInfo } = (list as Outfits).outfitConnection;
    return { cards, ids: cards.map(({ id }) => id), pageInfo };
  }

  test('scrolls by @connection and @refetchable, and a like updates the heart', async () => {
    const relay = await load();
    const environment = relay.createRelay(gateway.url, token);
    environment.retain(createOperationDescriptor(getRequest(relay.listQuery), {}));
    await relay.loadList(environment);
    expect(read(environment, relay).ids).toEqual(ids.slice(0, 2));
    const more = await artifact('relayListPaginationQuery');
    for (const end of [7, 12]) {
      const cursor = read(environment, relay).pageInfo.endCursor;
      await fetchQuery(environment, more, { count: 5, cursor }).toPromise();
      expect(read(environment, relay).ids).toEqual(ids.slice(0, end));
    }
    expect(read(environment, relay).pageInfo.hasNextPage).toBe(false);

    const before = read(environment, relay).cards[4] ?? expect.fail();
    const asked = gateway.requests.length;
    await relay.like(environment, before.id);
    const after = read(environment, relay).cards[4];
    expect(after).toEqual({ ...before, likes: before.likes + 1, viewerHasLiked: true });
    expect(gateway.requests.length).toBe(asked + 1);
  });

  test('reads one outfit of a list again, by node', async () => {
    const relay = await load();
    const environment = relay.createRelay(gateway.url, token);
    environment.retain(createOperationDescriptor(getRequest(relay.listQuery), {}));
    await relay.loadList(environment);
    const before = read(environment, relay).cards[1] ?? expect.fail();
    await likeAsAnother(before.id);
    expect(read(environment, relay).cards[1]).toEqual(before);
    const again = await artifact('relayCardRefetchQuery');
    await fetchQuery(environment, again, { id: before.id }).toPromise();
    expect(read(environment, relay).cards[1]).toEqual({ ...before, likes: before.likes + 1 });
  });

  test('runs its persisted queries where only trusted documents are run', async () => {
    const file = join(app.folder, 'persisted-queries.json');
    const trusted = await listen({ TRUSTED_DOCUMENTS: file, TRUSTED_DOCUMENTS_ONLY: 'on' });
    onTestFinished(() => trusted.close());
    const relay = await load();
    const environment = relay.createRelay(trusted.url, token);
    const query = (await app.load('src/__persisted__/relayListQuery.graphql.ts'))['default'];
    const operation = createOperationDescriptor(getRequest(query as never), {});
    environment.retain(operation);
    await fetchQuery(environment, query as never, {}).toPromise();
    expect(read(environment, relay).ids).toEqual(ids.slice(0, 2));
    expect(Object.keys(JSON.parse(readFileSync(file, 'utf8')))).toHaveLength(4);
  });
});

describe('live answers are read by the code of docs/live.md', () => {
  const text = readFileSync(new URL('../../docs/live.md', import.meta.url), 'utf8');
  const blockOf = (name: string) => {
    const [, code = expect.fail()] =
      new RegExp(`\`\`\`js ${name}\\n(.*?)\`\`\``, 's').exec(text) ?? [];
    return code;
  };
  const setupOf = (name: string) => blockOf(name).split('client.subscribe(')[0];
  const shows = `.subscribe({ next: ({ data }) => console.log(JSON.stringify(data)) });`;
  const relay = `${blockOf('relay')}
    const operation = { operationKind: 'subscription', name: 'live', text: query, metadata: {} };
    environment.getNetwork().execute(operation, {})${shows}`;

  test.each([
    ['graphql-sse', blockOf('graphql-sse')],
    ['graphql-ws', blockOf('graphql-ws')],
    ['urql over server-sent events', setupOf('graphql-sse') + blockOf('urql')],
    ['urql over a WebSocket', setupOf('graphql-ws') + blockOf('urql')],
    ['Apollo Client and its own link', blockOf('apollo')],
    ['Apollo Client over a WebSocket', setupOf('graphql-ws') + blockOf('apollo-ws')],
    ['Relay over server-sent events', setupOf('graphql-sse') + relay],
    ['Relay over a WebSocket', setupOf('graphql-ws') + relay],
  ])('with %s: a change is shown, also behind a lost connection', async (_name, code) => {
    const snippet =
      `import { WebSocket as Socket } from 'ws'; globalThis.WebSocket = Socket; ${code}`
        .replaceAll('http://localhost:4000/graphql', gateway.url)
        .replaceAll('ws://localhost:4000/graphql', gateway.url.replace('http', 'ws'));
    const reader = run(['--input-type=module', '--eval', snippet], {}, import.meta.dirname);
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
