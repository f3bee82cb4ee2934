// What a GraphQL document may have, what it may cost, and the words for what is too much.
import type { LightMyRequestResponse } from 'fastify';
import {
  buildClientSchema,
  type GraphQLInputType,
  type GraphQLObjectType,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  isCompositeType,
  isInputObjectType,
  isListType,
  isNonNullType,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { WeighFilter } from '../../src/graphql/plugins/cost.ts';
import { schema } from '../../src/graphql/schema.ts';
import { type TestGateway, useGateway } from '../support/gateway.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

const ask = ({ app }: TestGateway, query: string, variables = {}, headers = {}) =>
  postGraphql(app, { query, variables }, headers);

/** A refusal: 400 to clients of both media types, with a code, and numbers in the message. */
async function expectRefusal(
  gateway: TestGateway,
  query: string,
  code: string,
  message: RegExp,
  variables: object = {},
): Promise<void> {
  for (const accept of ['application/json', 'application/graphql-response+json', '*/*']) {
    const response = await ask(gateway, query, variables, { accept });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual({
      errors: [{ message: expect.stringMatching(message), extensions: { code } }],
    });
  }
}

async function expectData(gateway: TestGateway, query: string): Promise<void> {
  const response = await ask(gateway, query);
  expect(response.json()).not.toHaveProperty('errors');
  expect(response.statusCode).toBe(200);
}

describe('the size of a document', () => {
  const gateway = useGateway('PostgreSQL', rows);

  const times = (count: number, text: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => text(index)).join(' ');

  test('the size of a document is 1,000 tokens at most', async () => {
    const value = (digits: number) => `{ outfits(page: [${'1 '.repeat(digits)}]) { count } }`;
    expect((await ask(gateway, value(988))).body).toContain('Int cannot represent');
    await expectRefusal(gateway, value(989), 'TOO_MANY_TOKENS', /more than the 1000 tokens/);
  });

  const types = (levels: number, last = 'name') =>
    `__type(name: "Outfit") { ${'ofType { '.repeat(levels - 2)} ${last} ${'} '.repeat(levels - 1)}`;
  const inFragments = (levels: number) =>
    `{ ${types(levels, 'ofType { ...Inner }')} } fragment Inner on __Type { ... on __Type { ${'ofType { ... { '.repeat(9)} name ${'} } '.repeat(9)} } }`;
  const aliases = (count: number) => times(count, (index) => `a${index}: __typename`);
  const included = (count: number) => times(count, () => '... @include(if: true) { __typename }');
  const user = (count: number) => `{ outfits { results { ${'user { id } '.repeat(count)} } } }`;
  const list = (count: number) => `{ ${'outfits(page: 1) { count } '.repeat(count)} }`;
  const inSets = (fields: string) =>
    `{ outfits { results { ${times(21, (index) => `...F${index}`)} } } } ${times(21, (index) => `fragment F${index} on Outfit { ${fields} }`)}`;
  test.each<[string, string, RegExp, string[], string[]]>([
    [
      '20 levels of fields at most, introspection and fragments included',
      ...(['QUERY_TOO_DEEP', /21 .* most 20/] as const),
      [`{ ${types(20)} }`, inFragments(10)],
      [`{ ${types(21)} }`, inFragments(11)],
    ],
    [
      '50 aliases at most, wherever they are',
      ...(['TOO_MANY_ALIASES', /51 aliases, but at most 50/] as const),
      [`{ ${aliases(50)} }`],
      [
        `{ ${aliases(51)} }`,
        `{ ${aliases(25)} ... on Query { b: __typename ...More } } fragment More on Query { ${aliases(25)} }`,
      ],
    ],
    [
      '100 characters of an alias at most',
      ...(['VALUE_TOO_LARGE', /101 characters in one alias.*most 100/] as const),
      [`{ ${'a'.repeat(100)}: __typename }`],
      [`{ outfits { results { ${'a'.repeat(101)}: id } } }`],
    ],
    [
      '2 aliases at most in introspection',
      ...(['TOO_MANY_ALIASES', /3 aliases in introspection.*most 2/] as const),
      [],
      [
        '{ a: __schema { b: description } c: __schema { description } }',
        '{ __type(name: "A") { a: name b: name c: name } }',
        '{ __type(name: "A") { ...T } } fragment T on __Type { a: name b: name c: name }',
      ],
    ],
    [
      '50 directives at most',
      ...(['TOO_MANY_DIRECTIVES', /51 .*most 50/] as const),
      [`{ ${included(50)} }`],
      [`{ ${included(51)} }`, `{ __typename ${times(51, () => '@include(if: true)')} }`],
    ],
    [
      '20 repeated fields with arguments or fields at most in one set of fields',
      ...(['TOO_MANY_REPEATS', /21 repeated fields.* most 20/] as const),
      [
        ...[user(21), inSets('title id id'), inSets('user { id username } user { id }')],
        // As tools write it.
        `{ ${times(21, (index) => `a${index}: outfit(databaseId: 1) { __typename id __typename }`)} }`,
      ],
      [user(22), list(22)],
    ],
    [
      'no field hundreds of times',
      ...(['TOO_MANY_REPEATS', /repeats too many fields/] as const),
      [],
      [`{ ${'__typename '.repeat(990)} }`],
    ],
  ])('the size of a document is %s', async (_what, code, message, taken, refused) => {
    for (const query of taken) await expectData(gateway, query);
    for (const query of refused) await expectRefusal(gateway, query, code, message);
  });

  const chain = (length: number, body: (next: string) => string) =>
    times(length, (index) => {
      const next = index + 1 < length ? `...F${index + 1}` : '';
      return `fragment F${index} on Outfit { id ${body(next)} }`;
    });
  const inLists = (next: string) => `user { outfits { results { id ${next} } } }`;
  test.each([
    [
      'fragments that double',
      `{ outfits { results { ...F0 } } } ${chain(90, (next) => next + next)}`,
    ],
    [
      'fragments that double in fields',
      `{ outfits { results { ...F0 } } } ${chain(25, (next) => inLists(next) + inLists(next))}`,
    ],
    ['fragments in a circle', '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }'],
    [
      'hundreds of fragments',
      `{ outfits { results { ${times(120, (i) => `...F${i}`)} } } } ${chain(120, () => '')}`,
    ],
    ['one field hundreds of times', `{ outfits { results { ${'user { id } '.repeat(240)} } } }`],
    ['hundreds of unknown fields', `{ ${times(990, (i) => `x${i}`)} }`],
    ['hundreds of variables', `query (${times(190, (i) => `$v${i}: X!`)}) { outfits { count } }`],
  ])('is little enough that %s are answered at once, with few errors', async (_name, query) => {
    const start = process.cpuUsage();
    const response = await ask(gateway, query);
    const { user, system } = process.cpuUsage(start);
    // Seconds of computing, with room for a slow machine: without limits it would be minutes.
    expect((user + system) / 1e6).toBeLessThan(4);
    expect(response.statusCode).toBeLessThan(500);
    expect(response.json().errors?.length ?? 0).toBeLessThanOrEqual(6);
    expect(response.body).not.toContain('"Validation aborted."');
  });
});

describe('the cost of a document', () => {
  const gateway = useGateway('PostgreSQL', rows, { GRAPHQL_MAX_COST: '3', PAGE_SIZE: '7' });

  const connection = (args: string) => `outfitConnection${args} { edges { node { id } } }`;
  test.each<[string, string, number, object?]>([
    ['a page counts its outfits', '{ outfits { results { id title } } }', 1 + 7],
    ['a page of another size by that', '{ outfits(pageSize: 50) { results { id } } }', 1 + 50],
    [
      'a negative size lowers nothing',
      '{ a: outfits(pageSize: -90) { results { id } } b: outfits { results { id } } }',
      1 + 1 + 1 + 7,
    ],
    ['each owner counts', '{ outfits { results { id user { id } } } }', 1 + 7 * 2],
    [
      'lists in lists multiply',
      '{ outfits { results { user { outfits { results { id } } } } } }',
      1 + 7 * (2 + 1 + 7),
    ],
    [
      'aliases add up',
      '{ a: outfits { results { id } } b: outfits(page: 2) { results { id } } }',
      2 * (1 + 7),
    ],
    [
      'fragments count where they are spread',
      '{ a: outfits { ...P } ... on Query { b: outfits { ...P } } } fragment P on OutfitPage { results { id } }',
      2 * (1 + 7),
    ],
    ['a connection counts what is asked for', `{ ${connection('(first: 5)')} }`, 1 + 5 * 2],
    ['from the end too', `{ ${connection('(last: 6)')} }`, 1 + 6 * 2],
    ['and a page when nothing is said', `{ ${connection('')} }`, 1 + 7 * 2],
    ['no more than it may give', `{ ${connection('(first: 2147483647)')} }`, 1 + 100 * 2],
    [
      'a variable counts with its value',
      `query ($n: Int) { ${connection('(first: $n)')} }`,
      1 + 50 * 2,
      { n: 50 },
    ],
    ['or with its default', `query ($n: Int = 40) { ${connection('(first: $n)')} }`, 1 + 40 * 2],
    [
      'a list of none does not make what is in it free',
      `{ outfitConnection(first: 0) { edges { node { user { outfits { results { id } } } } } } }`,
      1 + 2 + 1 + (1 + 7),
    ],
    [
      'what is skipped does not count',
      'query ($no: Boolean = false) { outfits { results @include(if: $no) { id } } b: outfits { results @skip(if: $no) { id } } }',
      1 + 1 + 7,
    ],
    [
      'fields of one name are merged, in fragments too',
      '{ ...A outfits { count results { title } } ... on Query { ...B } } fragment A on Query { outfits { results { id } } } fragment B on Query { outfits { results { user { id } } } }',
      1 + 7 * 2,
    ],
    [
      'of several types the dearest counts',
      `{ node(id: "T3V0Zml0OjE=") { ... on Outfit { user { id } } ... on User { outfits(pageSize: 2) { results { id } } } ... on Node { id } } }`,
      1 + 1 + 2,
    ],
    [
      'only the operation that is meant counts, wherever it stands',
      'query A { outfits { count } } query B { outfits { results { id } } }',
      1 + 7,
    ],
  ])('%s', async (_name, query, cost, variables = {}) => {
    const operationName = query.startsWith('query A') ? 'B' : undefined;
    const response = await postGraphql(gateway.app, { query, variables, operationName });
    expect(response.statusCode).toBe(400);
    const message = `The document can give ${cost} objects, but at most 3 are allowed.`;
    const extensions = { code: 'QUERY_TOO_COSTLY' };
    expect(response.json()).toEqual({ errors: [{ message, extensions }] });
  });

  test('values cost nothing', async () => {
    await expectData(gateway, '{ __typename outfits { __typename count pageCount } }');
  });

  test('introspection passes at any limit, and gives the schema', async () => {
    const query = getIntrospectionQuery({
      directiveIsRepeatable: true,
      experimentalDirectiveDeprecation: true,
      inputValueDeprecation: true,
      oneOf: true,
      schemaDescription: true,
      specifiedByUrl: true,
    });
    const read = buildClientSchema((await ask(gateway, query)).json().data);
    const [given, ours] = [read, schema].map((one) => printSchema(lexicographicSortSchema(one)));
    expect(given).toBe(ours);
  });

  test.for([
    [`query ($n: Int) { ${connection('(first: $n)')} }`, { n: 1 }, { n: 90 }],
    [
      `query ($n: Int) { ...F } fragment F on Query { ${connection('(first: $n)')} }`,
      { n: 1 },
      { n: 90 },
    ],
    [
      `query ($all: Boolean!) { ${connection('(first: 1)')} ...F @include(if: $all) } fragment F on Query { all: ${connection('(first: 90)')} }`,
      { all: false },
      { all: true },
    ],
  ] as const)(
    'the cost of %s is counted again for other variables, also once it is compiled',
    async ([query, few, many]) => {
      for (let round = 0; round < 8; round++) {
        const cheap = await ask(gateway, query, few);
        expect(cheap.json().data.outfitConnection.edges).toHaveLength(1);
      }
      for (let round = 0; round < 3; round++) {
        await expectRefusal(gateway, query, 'QUERY_TOO_COSTLY', /can give 18[14] objects/, many);
      }
    },
  );
});

describe('a document of an app', () => {
  const gateway = useGateway('PostgreSQL', rows);

  const tab = (name: string, filter: string, condition: string) =>
    `${name}: outfits(filter: { ${filter} }) ${condition} { count }`;
  const leaves =
    'id databaseId title description imageKey imageOriginalUrl private created modified';
  const component = (index: number) =>
    `fragment F${index} on Outfit { user { outfits(pageSize: 20) { results { ${leaves} } } } }`;
  const both = `... on Outfit { user { outfits(pageSize: 3) { results { id } } } }
    ... on User { outfits(pageSize: 4) { results { id } } }`;
  test.each<[string, string, number, object?]>([
    [
      'that reads one list in four fragments',
      `query ($f: OutfitFilter) { ...Head ...List ...Pager ...Empty }
        fragment Head on Query { outfits(filter: $f) { count } }
        fragment List on Query { outfits(filter: $f) { results { id title } } }
        fragment Pager on Query { outfits(filter: $f) { nextPage } }
        fragment Empty on Query { outfits(filter: $f) { pageCount } }`,
      21,
      { f: { hasVideo: true } },
    ],
    [
      'that writes one list four times',
      `{ ${'outfits(filter: { hasVideo: true }) { count } '.repeat(4)} }`,
      1,
    ],
    [
      'that reads the fields of one list in five fragments',
      `{ outfitConnection(first: 40) { nodes { ...F0 ...F1 ...F2 ...F3 ...F4 } } } ${[0, 1, 2, 3, 4].map(component).join(' ')}`,
      1 + 40 * 23,
    ],
    [
      'that shows one of four tabs',
      `query ($a: Boolean!, $b: Boolean!) {
        ${tab('a', 'hasVideo: true', '@include(if: $a)')} ${tab('b', 'hasVideo: false', '@include(if: $b)')}
        ${tab('c', 'quality: [5]', '@skip(if: $a)')} ${tab('d', 'quality: [4]', '@skip(if: true)')} }`,
      1,
      { a: true, b: false },
    ],
    [
      'that reads nodes of two types',
      `query ($ids: [ID!]!) { nodes(ids: $ids) { ${both} } }`,
      1 + 5 * (2 + 3),
      { ids: ['VXNlcjox', 'VXNlcjoy', 'T3V0Zml0OjE=', 'T3V0Zml0OjI=', 'T3V0Zml0OjM='] },
    ],
  ])('%s costs what is executed', async (_name, query, cost, variables = {}) => {
    const response = await ask(gateway, query, variables, { 'graphql-cost': '1' });
    expect(response.json()).not.toHaveProperty('errors');
    expect(response.headers['graphql-cost']).toBe(`${cost};max=3000`);
  });

  test('a document of an app whose fragments have more places than are counted is refused at once', async () => {
    const level = (index: number, next: string) =>
      `fragment F${index} on Outfit { ${['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => `${name}: user { outfits { results { ...F${index + 1} } } }`).join(' ')} user { outfits { results { ${next} } } } }`;
    const levels = [0, 1, 2, 3, 4].map((index) => level(index, `...F${index + 1}`));
    const query = `{ outfits { results { ...F0 } } } ${levels.join(' ')} fragment F5 on Outfit { id }`;
    await expectRefusal(gateway, query, 'QUERY_TOO_COSTLY', /can give \d+ objects/);
  });

  test('a document of an app has each filter weighed once, in however many places it is', async () => {
    const { extensions = {} } =
      (schema.getType('User') as GraphQLObjectType).getFields()['outfits'] ?? {};
    const weigh = vi.fn(extensions['weighFilter'] as WeighFilter);
    const before = { ...extensions };
    Object.assign(extensions, { weighFilter: weigh });
    onTestFinished(() => void Object.assign(extensions, before));
    const both = (level: number, other = '') =>
      `outfits { results { ...A${level} } } likedOutfits { nodes { ...A${level} ${other} } }`;
    const query = `query ($f: OutfitFilter) { outfits { results { ...A0 } } }
      fragment A0 on Outfit { user { ...Many ${both(1, '...B')} } } fragment A1 on Outfit { user { ...Many ${both(2)} } }
      fragment A2 on Outfit { user { ...Many } } fragment B on Outfit { user { outfits { results { id } } likedOutfits { nodes { title } } } }
      fragment Many on User { a: outfits(filter: $f) { count } b: outfits(filter: $f) { count } }`;
    await expectRefusal(gateway, query, 'QUERY_TOO_COSTLY', /can give \d+ objects/, { f: {} });
    // Of the three types of answer: two filters, and two lists without one.
    expect(weigh).toHaveBeenCalledTimes(3 * 4);
  });
});

describe('a value that is too large', () => {
  const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
  const odd = ['\u0344', '\ud83d', 'e\u0301', 'ﷺ', ' ', 'a'];

  /** All places for a text, read from the schema: arguments, and fields of inputs. */
  function placesOf(type: GraphQLInputType): unknown[] {
    const inner = getNullableType(type);
    const text = 'TEXT';
    if (isListType(inner)) return placesOf(inner.ofType).map((value) => [value]);
    if (!isInputObjectType(inner)) return [text];
    return Object.values(inner.getFields()).flatMap((field) =>
      placesOf(field.type).map((value) => ({ [field.name]: value })),
    );
  }
  const rootFields = ['Query', 'Mutation'].flatMap((root) =>
    Object.values((schema.getType(root) as GraphQLObjectType).getFields()).flatMap((field) =>
      field.args.flatMap((arg) =>
        placesOf(arg.type).map((value) => ({
          root,
          field,
          arg,
          value,
          name: JSON.stringify(value),
        })),
      ),
    ),
  );

  test.each(rootFields.map((place, index) => ({ ...place, odd: odd[index % odd.length] ?? '' })))(
    'a value that is too large is refused without being repeated in $name',
    async ({ root, field, arg, value, odd: character }) => {
      const others = field.args.filter((one) => one !== arg && isNonNullType(one.type));
      const given = [...others.map(({ name }) => `${name}: "x"`), `${arg.name}: $v`].join();
      const type = getNamedType(field.type);
      const selection = isCompositeType(type) ? '{ __typename }' : '';
      const query = `${root.toLowerCase()} ($v: ${arg.type}) { ${field.name}(${given}) ${selection} }`;
      const payload = JSON.stringify({ query, variables: { v: value } }).replace(
        'TEXT',
        JSON.stringify(character.repeat(500_000 / character.length)).slice(1, -1),
      );
      const response = await postGraphql(gateway.app, payload, await signIn(1));
      expect(response.json().errors).not.toHaveLength(0);
      expect(response.json()).not.toHaveProperty('data');
      expect(response.body.length).toBeLessThan(4_000);
    },
  );

  test.each([
    ['a text', '{ user(username: $v) { id } }', 'String', 'x'.repeat(20_001), /20001 characters/],
    [
      'an item',
      '{ nodes(ids: $v) { id } }',
      '[ID!]!',
      ['', 'x'.repeat(30_000)],
      /30000 characters/,
    ],
    [
      'an object',
      '{ outfits(filter: $v) { count } }',
      'OutfitFilter',
      Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`k${index}`, 1])),
      /60000 fields in one object, but at most 100/,
    ],
    [
      'a list',
      '{ outfits(filter: $v) { count } }',
      'OutfitFilter',
      { quality: Array(201).fill(1) },
      /201 values in one list, but at most 200/,
    ],
  ])('is a 400 with its size: %s', async (_name, selection, type, v, message) => {
    const query = `query ($v: ${type}) ${selection}`;
    await expectRefusal(gateway, query, 'VALUE_TOO_LARGE', message, { v });
  });

  test('a value that is too large is refused in the text of a document too', async () => {
    const text = (length: number) => `{ user(username: "${'x'.repeat(length)}") { id } }`;
    await expectData(gateway, text(20_000));
    await expectRefusal(gateway, text(20_001), 'VALUE_TOO_LARGE', /20001 characters in one text/);
    const name = `{ ${'x'.repeat(500_000)} }`;
    expect((await ask(gateway, name)).body.length).toBeLessThan(1_000);
  });

  test('a value that is too large costs little where a text may be long but not as long as it is', async () => {
    const lists = Array.from({ length: 50 }, (_, i) => `a${i}: outfits(filter: $f) { count }`);
    const query = `query ($f: OutfitFilter) { ${lists.join(' ')} }`;
    const long = odd.map((character) => character.repeat(20_000 / character.length));
    for (const f of [
      { hashtags: Array(20).fill(long[0]) },
      ...long.map((search) => ({ search })),
    ]) {
      const { errors } = (await ask(gateway, query, { f })).json();
      expect(errors).toHaveLength(50);
      expect(errors[0].extensions.code).toBe('BAD_USER_INPUT');
    }
  });

  test('a value that is too large is cut where an error of a variable would repeat it', async () => {
    const query = 'query ($f: OutfitFilter) { outfits(filter: $f) { count } }';
    const f = { createdFrom: 'x'.repeat(19_000) };
    const response = await ask(gateway, query, { f });
    expect(response.json().errors[0].message).toMatch(
      /^Variable "\$f" got invalid value .* DateTime/,
    );
    expect(response.body.length).toBeLessThan(1_000);
  });
});

describe('the words for what is wrong', () => {
  const gateway = useGateway('PostgreSQL', rows);

  const query = '{ outfits { count } }';
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
  const variables = `{"query":"{__typename}","variables":{"a":${deep.slice(200_000, -200_000)}}}`;
  // The words of Yoga for what is in a body.
  const invalid = 'The body is not valid JSON.';
  const tooDeep = 'The body is nested deeper than 32 levels.';
  const noObject = 'The body must be one object: batches are not supported.';
  const must = (name: string, kind: string, given: string) =>
    `Expected "${name}" param to be ${kind}, but given ${given}.`;
  const noOperation = 'Could not determine what operation to execute.';
  const optional = 'empty or an object';
  test.each<[string, string | Buffer, string]>([
    ['no JSON', '{"query":', invalid],
    ['an open end', '['.repeat(1_000_000), invalid],
    ['nothing', '', 'The body is empty.'],
    ['bad bytes', Buffer.from('7b22ff227d', 'hex'), 'The body is not valid UTF-8.'],
    ['deep nesting', deep, tooDeep],
    ['deep variables', variables, tooDeep],
    ['a batch', `[{"query":"${query}"}]`, noObject],
    ['a text', '"x"', noObject],
    ['null', 'null', noObject],
    ['no query', '{"variables":{}}', 'The parameter query is missing.'],
    ['a list as query', '{"query":[]}', must('query', 'a string', 'array')],
    ['an operation 1', '{"query":"{a}","operationName":1}', noOperation],
    ['variables in a list', '{"query":"{a}","variables":[]}', must('variables', optional, 'array')],
    [
      'extensions as text',
      '{"query":"{a}","extensions":"x"}',
      must('extensions', optional, 'string'),
    ],
  ])('names a body with %s', async (_name, payload, message) => {
    const response = await post(payload);
    expect(response.statusCode).toBe(400);
    expectWords(response, message);
  });

  const two = 'query A { __typename } query B { __typename }';
  test.each([
    ['of an unknown name', 'query A { __typename }', 'B'],
    ['of an unknown name among two', two, 'C'],
    ['of no name among two', two, undefined],
  ])('refuses an operation %s', async (_name, query, operationName) => {
    const response = await postGraphql(gateway.app, { query, operationName });
    expect(response.statusCode).toBe(400);
    const extensions = { code: 'OPERATION_RESOLUTION_FAILURE' };
    expect(response.json()).toEqual({ errors: [{ message: noOperation, extensions }] });
  });

  const post = (payload: string | Buffer) =>
    gateway.app.inject({
      method: 'POST',
      url: '/graphql',
      headers: { 'content-type': 'application/json' },
      payload: Buffer.from(payload as string),
    });
  const expectWords = (response: LightMyRequestResponse, message: string) => {
    const extensions = { code: expect.stringMatching(/^[A-Z_]+$/) };
    expect(response.json()).toEqual({ errors: [{ message, extensions }] });
  };

  test.each([
    ['', 'The parameter query is missing.'],
    ['?query=', 'The parameter query is missing.'],
    ['?query={a}&query={b}', 'The parameter query is there more than once.'],
    ['?query={a}&variables={', 'The parameter variables is not valid JSON.'],
    ['?query={a}&variables=[]', must('variables', optional, 'array')],
    [
      `?query={a}&variables=${'['.repeat(3000)}${']'.repeat(3000)}`,
      'The parameter variables is nested deeper than 32 levels.',
    ],
    ['?query={a}&extensions=1', must('extensions', optional, 'number')],
  ])('names what is wrong with the query string %s', async (queryString, message) => {
    const response = await gateway.get(`/graphql${queryString}`);
    expect(response.statusCode).toBe(400);
    expect(response.json().errors).toEqual([{ message, extensions: { code: 'BAD_REQUEST' } }]);
  });
});
