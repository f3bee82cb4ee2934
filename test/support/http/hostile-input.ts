// Hostile input: requests, frames, messages, values and headers that are the same for the same random numbers.
import { METHODS } from 'node:http';
import {
  type GraphQLInputType,
  type GraphQLSchema,
  isInputObjectType,
  isListType,
  isNonNullType,
  Kind,
  OperationTypeNode,
  parse,
  print,
  visit,
} from 'graphql';
import { generateDocument } from '../graphql/random-documents.ts';
import type { Dice } from '../models/dice.ts';

/** Characters that grow, join, turn or break when text is folded, normalized, split or encoded. */
const oddCharacters = [
  ...'a \u0344 \u0301 \u1e9b\u0323 \ufdfa \u1100\u1161\u11a8 \u0130 ß \u0f73'.split(' '),
  ...'\ud83d \udc4d 👩‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 \u200d \u202e \u2028 \u2029 \ufeff \u0000'.split(' '),
  ...'# \\ " % _ \' [ { $1 ０'.split(' '),
  ...['\u00a0', '\u3000', ' ', '\n'],
];

function oddText(dice: Dice, length = dice.pick([0, 1, 30, 260, 10_001, 1_000_000])): string {
  const unit = dice.times(3, () => dice.pick(oddCharacters)).join('') || dice.pick(oddCharacters);
  return unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
}

/** A value of any type of JSON: nested, huge, odd. */
function anyValue(dice: Dice): unknown {
  const nest = (levels: number, inner: unknown): unknown => {
    let value = inner;
    for (let level = 0; level < levels; level += 1)
      value = dice.chance(0.5) ? [value] : { a: value };
    return value;
  };
  return dice.pick([
    () => null,
    () => dice.chance(0.5),
    () => dice.pick([0, -1, 1.5, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 + 2, 1e308, -1e20]),
    () => oddText(dice),
    () => oddText(dice),
    () => [],
    () => ({}),
    () => dice.times(5, () => anyValue(dice)),
    () => Array.from({ length: 100_000 }, () => dice.pick([0, 'a', null])),
    () => Object.fromEntries(dice.times(20_000, (index) => [`k${index}`, index])),
    () => nest(dice.pick([3, 31, 40, 800]), 1),
    () => JSON.parse('{"toString":1,"valueOf":null,"then":"x","length":-1,"toJSON":{}}'),
    () => JSON.parse('{"__proto__":{"polluted":true},"prototype":null}'),
  ])();
}

const ordinary = {
  Int: [-1, 1, 2, 7],
  String: ['a', 'T3V0Zml0OjE=', 'VXNlcjox', '2022-01-01T00:00:00Z'],
};

/** A GraphQL operation with one hostile value, at any argument or input field that the schema has. */
export function hostileOperation(
  schema: GraphQLSchema,
  dice: Dice,
): { query: string; variables: object } {
  const root = dice.pick(Object.values(OperationTypeNode));
  const { text, types, variables } = generateDocument(schema, dice, ordinary, root);
  // Most that are Boolean are those of conditions.
  const names = Object.keys(types).filter(
    (one) => `${types[one]}` !== 'Boolean' || dice.chance(0.1),
  );
  const name = dice.pick(names) ?? '';
  const type = types[name];
  if (!type) return hostileOperation(schema, dice);
  const value = hostileInput(type, dice);
  const undeclared = dice.chance(0.1) ? { undeclared: anyValue(dice) } : {};
  const isLiteral = dice.chance(0.2);
  const asked = isLiteral ? replaceVariable(text, name, literal(value)) : text;
  const query = dice.chance(0.2) ? breakWords(asked, dice) : asked;
  // Not as both: a body may have 1 MiB.
  const given = isLiteral ? {} : { [name]: value };
  return { query, variables: { ...undeclared, ...variables[0], ...given } };
}

/** A document with a literal in the place of one of its variables. */
function replaceVariable(document: string, name: string, text: string): string {
  const replaced = visit(parse(document), {
    VariableDefinition: ({ variable }) => (variable.name.value === name ? null : undefined),
    // Of the kind that is printed as it is.
    Variable: (node) => (node.name.value === name ? { kind: Kind.ENUM, value: text } : undefined),
  });
  return print(replaced);
}

function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(' ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const pairs = Object.entries(value).map(([name, inner]) => `${name}: ${literal(inner)}`);
  return `{${pairs.join(' ')}}`;
}

/** Another word in up to five places of a document. */
function breakWords(document: string, dice: Dice): string {
  const words = document.split(/\b/);
  dice.times(5, () => {
    const text = JSON.stringify(oddText(dice, dice.pick([0, 1, 30])));
    words[dice.below(words.length)] = dice.pick([...oddWords, text]);
  });
  return words.join('');
}

/** Any value, or one of the right shape with any value somewhere within. */
function hostileInput(type: GraphQLInputType, dice: Dice): unknown {
  if (isNonNullType(type)) return hostileInput(type.ofType, dice);
  if (dice.chance(0.25)) return anyValue(dice);
  if (isListType(type)) {
    const item = hostileInput(type.ofType, dice);
    const most = Math.ceil(1_200_000 / (JSON.stringify(item ?? null).length + 1));
    return Array(Math.min(dice.pick([1, 3, 101, 100_000]), most)).fill(item);
  }
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields());
    const chosen = dice.pick(fields);
    const others = fields.filter((field) => field !== chosen && isNonNullType(field.type));
    return Object.fromEntries([
      ...others.map((field) => [field.name, 'a']),
      [chosen.name, hostileInput(chosen.type, dice)],
    ]);
  }
  return dice.chance(0.5) ? oddText(dice) : anyValue(dice);
}

/** A message of graphql-transport-ws with each field as it should be, as any value, or absent. */
export function hostileMessage(schema: GraphQLSchema, dice: Dice, id: number): string {
  const mutate = (fields: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, value]) => {
        const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
        if (dice.chance(0.1)) return [];
        if (dice.chance(0.2)) return [[name, anyValue(dice)]];
        return [[name, isRecord ? mutate(value as Record<string, unknown>) : value]];
      }),
    );
  const headers = { Authorization: 'Bearer a.b.c', 'x-client-name': oddText(dice, 200) };
  const message = dice.pick<() => Record<string, unknown>>([
    () => ({ type: 'connection_init', payload: { ...headers, headers } }),
    () => ({ type: 'subscribe', id: `${id}`, payload: hostileOperation(schema, dice) }),
    () => ({
      type: 'subscribe',
      id: dice.pick(['1', 'x'.repeat(200)]),
      payload: {
        query: 'subscription { outfits { count } }',
        variables: {},
        operationName: null,
        extensions: {},
      },
    }),
    () => ({
      type: dice.pick(['ping', 'pong', 'complete', 'next', 'error', 'connection_ack', 'nope']),
      id: '1',
      payload: {},
    }),
  ])();
  const text = JSON.stringify(mutate(message));
  return dice.chance(0.05) ? text.slice(0, dice.below(text.length)) : text;
}

/** A frame of RFC 6455 with any bits, lengths and masks. */
export function hostileFrame(dice: Dice): Buffer {
  const payload = Buffer.from(oddText(dice, dice.pick([0, 5, 125, 126, 70_000])));
  const first =
    (dice.chance(0.8) ? 0x80 : 0) |
    (dice.chance(0.1) ? 0x70 : 0) |
    dice.pick([0, 1, 1, 2, 3, 8, 9, 10, 15]);
  const claimed = dice.chance(0.8) ? payload.length : dice.pick([0, 126, 65_536, 2 ** 31, 2 ** 53]);
  const mask = dice.chance(0.9) ? 0x80 : 0;
  const length = Buffer.alloc(claimed < 126 ? 1 : claimed < 65_536 ? 3 : 9);
  length[0] = mask | (claimed < 126 ? claimed : claimed < 65_536 ? 126 : 127);
  if (length.length === 3) length.writeUInt16BE(claimed, 1);
  if (length.length === 9) length.writeBigUInt64BE(BigInt(claimed), 1);
  return Buffer.concat([Buffer.from([first]), length, Buffer.alloc(mask ? 4 : 0), payload]);
}

/** Alternatives of a table: `x*30` is repeated so often, `_` is empty, `~` a space, `\t` a tab. */
const alternatives = (text: string): string[] =>
  text
    .trim()
    .split(/\s+/)
    .map((one) => one.replace(/^_$/, '').replaceAll('~', ' ').replaceAll('\\t', '\t'))
    .map((one) => one.replace(/^(.+)\*(\d+)$/, (_all, unit, times) => unit.repeat(times)));

/** What a word of a document may become. */
const oddWords = alternatives(`
  { } ( ...F ...G $v mutation subscription __schema __type __typename __proto__ _ -1 2147483648 1e20 null true nope
  [[[[1]]]] {a:{b:1}} "\\ud83d" """x""" a:~ @skip(if:~$v) @nope~@nope }~fragment~F~on~Outfit~{~...G~user~{~...F~}~`);

const paths = alternatives(`
  / * /api/outfits/ /api/outfits /api/outfits/7/ /api/outfits/%zz /graphql /graphql/ /health/live /health/ready
  /outfits/ /users/5 /api/docs /api/openapi.json /nope // _ http://x/api/outfits/ HTTPS://y:1/graphql rtsp://x/ x:1
  /graphql?query={__typename} /media/a /api/outfits/?page=last&ordering=-like_count /graphql/schema.graphql
  /api/;/../a /\xe9`);
const methods = [
  ...METHODS,
  ...alternatives('PRI ANNOUNCE DESCRIBE SETUP PLAY FLUSH get FOO _ GET\\t'),
];
const versions = alternatives(
  'HTTP/1.1 HTTP/1.1 HTTP/1.1 HTTP/1.0 HTTP/0.9 HTTP/2.0 HTTP/1.2 RTSP/1.0 http/1.1 _',
);
const options = alternatives(
  'upgrade keep-alive close x-upgrade te host content-length HTTP2-Settings _',
);

/** Names of headers that something reads, with values. */
const table = `
  host: shop.test _ a:99999 [::1]:80 a~b \xe9 x*3000
  upgrade: websocket h2c Foo WebSocket,~h2c TLS/1.0 _
  sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ== x _
  sec-websocket-version: 13 8 7 x 13,~13
  sec-websocket-protocol: graphql-transport-ws graphql-ws a,,b graphql-transport-ws,~graphql-transport-ws
  sec-websocket-extensions: permessage-deflate;~client_max_window_bits
  transfer-encoding: chunked CHUNKED gzip,~chunked identity chunked,~x _
  te: trailers,~deflate
  trailer: x,~content-length
  expect: 100-continue 100-Continue x _
  content-type: application/json application/x-www-form-urlencoded multipart/form-data;~boundary= a/b
    application/x-www-form-urlencoded;~charset=iso-8859-1 application/json;*200
  content-encoding: gzip identity br,~br _
  accept: */* text/html text/event-stream multipart/mixed;subscriptionSpec=1.0 a/b;q=0 text/html;q=x,*700
  accept-encoding: gzip br;q=1,~*;q=0 identity;q=0 x;q=1,*1500
  if-none-match: * W/"x" " "a",*3000
  authorization: Bearer~x Bearer~a.b.c Basic~! bearer~eyJhbGciOiJub25lIn0.e30. eyJ*3000
  cookie: a=b sessionid= ;*8000 =;=;*2000
  origin: https://app.test null * https://a*500
  access-control-request-method: POST _ *
  access-control-request-headers: x,*4000
  x-forwarded-for: 1.2.3.4 [::1]:80,~127.0.0.2 ,~, unknown 127.0.0.2,*1500 ::ffff:1.2.3.4%eth0
  x-forwarded-proto: https HTTPS,~http javascript ,, wss
  x-forwarded-host: a.test a,~b "><script> [ x*8000
  forwarded: for="[::1]";proto=https*200
  x-request-id: a a~b x*9000
  idempotency-key: a _ x*300 \xe9
  last-event-id: 1 x*9000
  graphql-cost: 1
  traceparent: 00-x 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
  range: bytes=0-,*500
  x-http-method-override: DELETE`;
const values = table.split(/\n(?= {2}\S)/).map((line) => /^ *([\w-]+):([\s\S]*)$/.exec(line));

/** A line of a header, in any spelling. */
function hostileHeader(dice: Dice): readonly [name: string, value: string] {
  const [, name = '', text = ''] = dice.pick(values.filter((line) => line !== null));
  return dice.pick([
    ...Array(8).fill(() => [name, dice.pick(alternatives(text))]),
    () => ['connection', dice.times(4, () => dice.spell(dice.pick(options))).join(', ')],
    () => [dice.pick(['user-agent', 'apollographql-client-name']), oddText(dice, 3_000)],
    () => ['x-client-version', oddText(dice, 300)],
  ])();
}

/** A request as bytes: any method, target, version and headers, in any spelling, with a body that fits or does not. */
export function hostileRequest(dice: Dice, token: string): Buffer {
  const isOrdinary = dice.chance(0.5);
  const method = isOrdinary ? dice.pick(['GET', 'POST', 'HEAD', 'OPTIONS']) : dice.pick(methods);
  const target = dice.chance(0.3)
    ? `${dice.pick(paths)}?${parameters(dice, 300, 14_000)}`
    : dice.pick(paths);
  const version = isOrdinary ? 'HTTP/1.1' : dice.pick(versions);
  const body = hostileBody(dice);
  const lines = dice.times(7, () => {
    const [name, value] = hostileHeader(dice);
    return `${dice.spell(name)}:${dice.pick([' ', '', '\t', '  '])}${value}${dice.pick(['', '', ' ', '\t'])}`;
  });
  if (dice.chance(0.8)) lines.push('Host: shop.test');
  if (dice.chance(0.3)) lines.push(`Authorization: ${token}`);
  if (dice.chance(0.1))
    lines.push(
      dice.pick([' folded', 'no colon', ': x', `x: ${'y'.repeat(20_000)}`, 'a\x01b: c', 'a: \x7f']),
    );
  if (dice.chance(0.7))
    lines.push(
      `Content-Length: ${dice.chance(0.8) ? body.length : dice.pick([0, 5, -1, 'x', '1, 1', 2 ** 40, 1_048_577])}`,
    );
  else if (dice.chance(0.5)) lines.push('Transfer-Encoding: chunked');
  if (dice.chance(0.05)) lines.push(...Array.from({ length: 1_500 }, () => 'a:'));
  lines.sort(() => dice.below(3) - 1);
  const head = `${method} ${target} ${version}\r\n${lines.join(dice.chance(0.95) ? '\r\n' : '\n')}\r\n\r\n`;
  const chunk = dice.chance(0.5)
    ? `${body.length.toString(16)};${'x'.repeat(dice.below(30))}\r\n`
    : '';
  const sent = dice.chance(0.8) ? body : body.subarray(0, dice.below(body.length + 1));
  return Buffer.concat([
    Buffer.from(head + chunk, 'latin1'),
    sent,
    Buffer.from(chunk && '\r\n0\r\n\r\n'),
  ]);
}

function hostileBody(dice: Dice): Buffer {
  return dice.pick([
    () => Buffer.alloc(0),
    () => Buffer.from('{"query":"{ outfits { count } }"}'),
    () => Buffer.from(JSON.stringify(anyValue(dice)) ?? ''),
    () =>
      Buffer.from(
        JSON.stringify({
          image_key: anyValue(dice),
          title: anyValue(dice),
          private: anyValue(dice),
        }),
      ),
    () => Buffer.from(parameters(dice, 60_000, 1_000_000)),
    () =>
      Buffer.alloc(
        dice.pick([1, 100, 1_048_576, 1_500_000]),
        dice.pick(['[', '{"a":', '\xff', 'a=%E9&', '\0']),
      ),
  ])();
}

/** Thousands of parameters, odd, empty, repeated, broken. */
function parameters(dice: Dice, most: number, bytes: number): string {
  const names = alternatives(
    'page ordering query variables title image_key _ a[] __proto__ %zz %E9',
  );
  const texts = alternatives('1 _ % %00 + last %F0%9F%91%8D %ff ; =*20 -created,-id');
  const name = () => dice.pick([...names, `p${dice.below(10_000)}`]);
  const value = () => dice.pick(texts);
  const pairs = dice.times(most, () => `${name()}=${value()}`);
  return pairs.join(dice.pick(['&', '&', '&&', ';'])).slice(0, bytes);
}
