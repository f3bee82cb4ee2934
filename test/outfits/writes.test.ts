// Publishing, changing, deleting and liking, by POST and by GraphQL, on both databases.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { deleteExpiredAnswers } from '../../src/outfits/writes/idempotency.ts';
import { connectForTest, databaseUrlOf } from '../support/databases/connections.ts';
import { countBlocked } from '../support/faults/clients.ts';
import { databaseKinds, openForTest, outfitId, useGateway } from '../support/gateway.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 60, users: 5 })].map((row) => ({
  ...row,
  private: row.id % 3 === 0,
}));
const uuid = '2b1d3c4e-0000-4000-8000-000000000001';
const image = `https://media.example.com/outfits/${uuid}.png`;
const video = `https://video.example.com/outfits_videos/${uuid}.mp4`;
const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const ownerId = rows[0]?.userId ?? 0;
const otherId = rows.find((row) => row.userId !== ownerId)?.userId ?? 0;

const record = /fragment OutfitRecord.*/s.exec(
  readFileSync(new URL('../../src/rest/outfits.graphql', import.meta.url), 'utf8'),
)?.[0];

interface Payload {
  outfit: Record<string, unknown> | null;
  errors: { field: string; code: string; messages: string[] }[];
}

interface Answer {
  data?: Record<string, Payload> | null;
  errors?: { message: string; extensions?: { code?: string } }[];
}

describe.each(databaseKinds)('on %s', (kind) => {
  const gateway = useGateway(kind, rows, { AUTH_JWT_SECRET: secret });
  let owner: Record<string, string>;
  let other: Record<string, string>;

  beforeAll(async () => {
    owner = await signIn(ownerId);
    other = await signIn(otherId);
  });

  const send = (payload: string | Buffer, headers: Record<string, string>) =>
    gateway.app.inject({
      method: 'POST',
      url: '/api/outfits/',
      headers: { host: 'shop.test', ...headers },
      payload,
    });
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    send(JSON.stringify(body), { ...json, ...owner, ...headers });
  const ask = async (
    headers: Record<string, string>,
    query: string,
    variables: object = {},
  ): Promise<Answer & { status: number }> => {
    const response = await postGraphql(gateway.app, { query, variables }, headers);
    return { ...response.json(), status: response.statusCode };
  };
  const mutate = async (
    headers: Record<string, string>,
    field: string,
    { id, ...others }: { readonly id?: number; readonly [name: string]: unknown } = {},
  ): Promise<Payload> => {
    const variables = id === undefined ? others : { ...others, id: outfitId(id) };
    const types = {
      createOutfit: '$input: CreateOutfitInput!',
      updateOutfit: '$id: ID!, $input: UpdateOutfitInput!',
    };
    const parameters = types[field as keyof typeof types] ?? '$id: ID!';
    const names = Object.keys(variables).map((name) => `${name}: $${name}`);
    const selection = `outfit { ...OutfitRecord } ${field in types ? 'errors { field code messages }' : ''}`;
    const { data, errors } = await ask(
      headers,
      `mutation (${parameters}) { ${field}(${names}) { ${selection} } } ${record}`,
      variables,
    );
    if (errors) throw new Error(JSON.stringify(errors));
    return data?.[field] as Payload;
  };
  /** Sends a mutation of which only the error matters. */
  const refusal = async (headers: Record<string, string>, field: string) => {
    const {
      status,
      data,
      errors = [],
    } = await ask(headers, `mutation { ${field} { __typename } }`);
    const [{ message, extensions } = {}] = errors;
    return { status, code: extensions?.code, message, data: Object.values(data ?? {})[0] ?? null };
  };
  const newOutfit = async () => {
    const { outfit } = await mutate(owner, 'createOutfit', { input: { imageKey: image, video } });
    return Number(outfit?.['id']);
  };
  const count = async () => (await gateway.get('/api/outfits/')).json().count as number;
  const likesOf = async (id: number) => {
    const { data } = await ask({}, `{ outfit(databaseId: ${id}) { likes } }`);
    return (data as unknown as { outfit: { likes: number } }).outfit.likes;
  };

  describe('POST', () => {
    test('publishes an outfit of the viewer, and answers its record as the list has it', async () => {
      const before = await count();
      const response = await post({
        title: ' Rain 🌧 ',
        description: 'a\nb',
        image_key: image,
        private: true,
        background_color: '#0a9',
        video: `outfits_videos/${uuid}.mp4`,
        creation_device: 'ios',
        id: 1,
        likes: 99,
        unknown: {},
      });
      expect(response.statusCode).toBe(201);
      expect(response.headers).toMatchObject({
        allow: 'GET, POST, HEAD, OPTIONS',
        'content-type': 'application/json',
        vary: 'Accept',
      });
      expect(response.headers['location']).toBeUndefined();
      const created = response.json();
      expect(created).toMatchObject({
        title: 'Rain 🌧',
        description: 'a\nb',
        image_key: image,
        image_original_url: image,
        complete: true,
        likes: 0,
        user: { id: ownerId },
        private: true,
        background_color: '#0a9',
        video,
        play_video: true,
        creation_device: 'ios',
        modification_device: '',
      });
      expect(created.modified).toBe(created.created);
      expect(Math.abs(Date.parse(created.created) - Date.now())).toBeLessThan(60_000);
      const list = await gateway.get('/api/outfits/');
      expect(list.json().count).toBe(before + 1);
      expect(list.body).toContain(`"results":[${response.body},`);
    });

    test('POST takes a form, in which an empty field is one that was not filled in', async () => {
      const fields = { image_key: `outfits/${uuid}.jpeg`, title: '', video: '', private: 'on' };
      const body = `${new URLSearchParams({ ...fields, image_original_url: '', creation_device: '' })}`;
      const response = await send(body, { ...form, ...owner });
      expect(response.statusCode).toBe(201);
      expect(response.json()).toMatchObject({
        title: '',
        image_original_url: `https://media.example.com/outfits/${uuid}.jpeg`,
        private: true,
        video: null,
        play_video: false,
        creation_device: 'web',
      });
    });

    test.each([
      ['charset=iso-8859-1', 'caf%E9 \xe9', 'café é'],
      ['charset="ISO-8859-15"', '%A4', '€'],
      ['boundary=x; Charset=windows-1252', '%80', '€'],
      ['charset=Shift_JIS', '%83%5C', 'ソ'],
      ['charset=iso-2022-jp', '%1B$B%25%3D%1B(B', 'ソ'],
      ['charset=utf-8', 'caf%C3%A9+%zz%2B', 'café %zz+'],
      ['charset=utf8', '\xc3\xa9', 'é'],
      ['charset=', '%EF%BB%BFa', '\ufeffa'],
    ])('reads a form with %s: %s', async (charset, text, title) => {
      const headers = { 'content-type': `${form['content-type']}; ${charset}`, ...owner };
      const body = Buffer.from(`title=${text}&image_key=outfits/${uuid}.png&a&&=`, 'latin1');
      const created = await send(body, headers);
      expect([created.statusCode, created.json().title]).toEqual([201, title]);
    });

    const notIn = (charset: string) =>
      `Form parse error - The form has bytes that are not ${charset}.`;
    const ofType = (type: string) => `Unsupported media type "${type}" in request.`;
    type Refused = [charset: string, text: string, status: number, detail: string];
    test.each<Refused>([
      ...['title=%E9', 'title=\xe9', '\xe9=1'].map(
        (text): Refused => ['', text, 400, notIn('utf-8')],
      ),
      ['; charset=utf-8', 'a=%ED%A0%80', 400, notIn('utf-8')],
      ['; charset=Shift_JIS', 'a=%83', 400, notIn('shift_jis')],
      ...['utf-16', 'utf-16be', 'utf-7', 'x-unknown'].map((name): Refused => {
        const charset = `; charset=${name}`;
        return [charset, 'title=a', 415, ofType(`${form['content-type']}${charset}`)];
      }),
    ])(
      'refuses a form with the media type and body "%s", "%s": %i',
      async (charset, text, status, detail) => {
        const headers = { 'content-type': `${form['content-type']}${charset}`, ...owner };
        const refused = await send(Buffer.from(text, 'latin1'), headers);
        expect([refused.statusCode, refused.json()]).toEqual([status, { detail }]);
      },
    );

    test('POST refuses a form of more than 1000 fields', async () => {
      const refused = await send('a=1&'.repeat(1_001), { ...form, ...owner });
      const detail = 'Form parse error - The form has more than 1000 fields.';
      expect([refused.statusCode, refused.json()]).toEqual([400, { detail }]);
    });

    const notADictionary = (kind: string) => ({
      non_field_errors: [`Invalid data. Expected a dictionary, but got ${kind}.`],
    });
    test.each<[string, unknown, Record<string, string[]>]>([
      ['nothing', {}, { image_key: ['This field is required.'] }],
      [
        'null everywhere',
        { image_key: null, title: null, private: null, video: null, creation_device: null },
        {
          title: ['This field may not be null.'],
          image_key: ['This field may not be null.'],
          private: ['This field may not be null.'],
          creation_device: ['This field may not be null.'],
        },
      ],
      [
        'wrong types and wrong values at once, in the order of the fields',
        {
          ...{ creation_device: 7, video: {}, background_color: 'RED', private: 'maybe' },
          ...{ image_key: [], description: 'x'.repeat(10_001), title: true },
        },
        {
          title: ['Not a valid string.'],
          description: ['Ensure this field has no more than 10000 characters.'],
          image_key: ['Not a valid string.'],
          private: ['Must be a valid boolean.'],
          background_color: ['This value does not match the required pattern.'],
          video: ['Not a valid string.'],
          creation_device: ['"7" is not a valid choice.'],
        },
      ],
      [
        'characters that cannot be stored',
        { image_key: image, title: `\0${'👗'.repeat(255)}\ud83d` },
        {
          title: [
            'Ensure this field has no more than 255 characters.',
            'Null characters are not allowed.',
            'Surrogate characters are not allowed: U+D83D.',
          ],
        },
      ],
      [
        'addresses of other hosts',
        { image_key: `https://evil.test/outfits/${uuid}.png`, image_original_url: '', video: 'x' },
        {
          image_key: ['Enter a valid URL.'],
          image_original_url: ['This field may not be blank.'],
          video: ['Enter a valid URL.'],
        },
      ],
      ['a list', [], notADictionary('list')],
      ['a text', 'x', notADictionary('str')],
      ['a number', 1.5, notADictionary('float')],
      ['null', null, { non_field_errors: ['No data provided'] }],
    ])('of %s is a 400 that names every field', async (_name, body, expected) => {
      const before = await count();
      const response = await post(body);
      expect([response.statusCode, response.body]).toEqual([400, JSON.stringify(expected)]);
      expect(await count()).toBe(before);
    });

    test('POST takes texts of exactly the longest length, in code points', async () => {
      const response = await post({
        image_key: image,
        title: '👗'.repeat(255),
        description: '👗'.repeat(10_000),
      });
      expect(response.statusCode).toBe(201);
      expect([...response.json().description]).toHaveLength(10_000);
    });

    // What JSON is refused with which sentence is tried at /graphql, in limits.test.ts: one function reads both.
    const zipped = { ...json, 'content-encoding': 'gzip' };
    const notUtf8 = Buffer.from('7b22ff223a317d', 'hex');
    test.each<[string, Record<string, string>, string | Buffer, number, string]>([
      ['broken JSON', json, '{"a":', 400, 'JSON parse error - The body is not valid JSON.'],
      ['invalid UTF-8', json, notUtf8, 400, 'JSON parse error - The body is not valid UTF-8.'],
      ['no type', {}, 'x', 415, ofType('')],
      ['no known type', { 'content-type': 'x' }, 'x', 415, ofType('x')],
      [
        ...(['compressed bytes', zipped, gzipSync('{"title":"a"}'), 415] as const),
        'Unsupported content encoding "gzip" in request.',
      ],
      ['more than it may have', json, ' '.repeat(1_048_577), 413, 'Request body is too large.'],
    ])('of %s is refused', async (_name, headers, body, status, detail) => {
      const response = await send(body, { ...headers, ...owner });
      expect([response.statusCode, response.json()]).toEqual([status, { detail }]);
      const expected = { 'content-type': 'application/json', vary: 'Accept' };
      expect(response.headers).toMatchObject(expected);
    });

    test('without a token is a 401, whatever the body', async () => {
      for (const headers of [json, { 'content-type': 'text/plain' }]) {
        expect(await send('{', headers)).toMatchObject({
          statusCode: 401,
          headers: { 'www-authenticate': 'Bearer' },
          body: '{"detail":"Authentication credentials were not provided."}',
        });
      }
    });

    test('a write of a user that does not exist is a 401', async () => {
      const response = await post({ image_key: image }, await signIn(999_999));
      expect(response).toMatchObject({ statusCode: 401, body: '{"detail":"Invalid token."}' });
    });

    test('POST of any JSON is either created or explained, and never fails', async () => {
      const value = fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }), fc.constant(image));
      const names = [
        ...['title', 'description', 'image_key', 'image_original_url', 'private'],
        ...['background_color', 'video', 'creation_device'],
      ];
      const body = fc.dictionary(fc.constantFrom(...names, '__proto__', 'constructor'), value);
      await fc.assert(
        fc.asyncProperty(fc.oneof(body, fc.jsonValue()), async (anything) => {
          const response = await post(anything);
          expect([201, 400]).toContain(response.statusCode);
          if (response.statusCode === 201) return;
          const found = Object.keys(response.json());
          expect(found.length).toBeGreaterThan(0);
          const known = [...names, 'non_field_errors'].filter((name) => found.includes(name));
          expect(found).toEqual(known);
        }),
        { numRuns: 100 },
      );
    });
  });

  test('OPTIONS describes the fields only to a viewer who may publish', async () => {
    const options = (headers: Record<string, string>) =>
      gateway.app.inject({ method: 'OPTIONS', url: '/api/outfits/', headers });
    expect((await options({})).json()).not.toHaveProperty('actions');
    const { actions } = (await options(owner)).json();
    const published = await post({ image_key: image });
    expect(Object.keys(actions.POST)).toEqual(Object.keys(published.json()));
    expect(actions.POST).toMatchObject({
      id: { type: 'integer', required: false, read_only: true, label: 'ID' },
      title: { type: 'string', required: false, read_only: false, label: 'Title', max_length: 255 },
      image_key: { type: 'string', required: true, read_only: false, label: 'Image key' },
      private: { type: 'boolean', required: false, read_only: false },
      user: { type: 'nested object', read_only: true, children: { id: { type: 'integer' } } },
      created: { type: 'datetime', read_only: true },
      creation_device: {
        type: 'choice',
        read_only: false,
        choices: expect.arrayContaining([{ value: 'ios', display_name: 'ios' }]),
      },
    });
  });

  describe('createOutfit', () => {
    test('createOutfit makes the record that POST makes of the same input', async () => {
      const posted = (await post({ image_key: image, title: 'Same', video })).json();
      const { outfit, errors } = await mutate(owner, 'createOutfit', {
        input: { imageKey: image, title: 'Same', video },
      });
      expect(errors).toEqual([]);
      const own = { id: 0, created: '', modified: '' };
      expect(JSON.stringify({ ...outfit, ...own })).toBe(JSON.stringify({ ...posted, ...own }));
    });

    test.each<[field: string, code: string, ...messages: string[]]>([
      ['title', 'TOO_LONG', 'At most 255 characters are allowed.'],
      [
        ...(['title', 'FORBIDDEN_CHARACTERS', 'Null characters are not allowed.'] as const),
        'Surrogate characters are not allowed: U+D83D.',
      ],
      ['imageKey', 'FOREIGN_URL', 'The URL must begin with https://media.example.com/.'],
      ['imageOriginalUrl', 'BLANK', 'This field must not be empty.'],
      [
        ...(['backgroundColor', 'INVALID_COLOR'] as const),
        'A colour is #rgb or #rrggbb, in lower case, or empty.',
      ],
      [
        ...(['video', 'INVALID_KEY'] as const),
        'The URL must be https://video.example.com/outfits_videos/<uuid>.mp4, or only that path.',
      ],
    ])(
      'returns what is wrong with %s as data, with the code %s',
      async (field, code, ...messages) => {
        const { outfit, errors } = await mutate(owner, 'createOutfit', {
          input: {
            ...{ title: `\0${'👗'.repeat(255)}\ud83d`, private: null, imageOriginalUrl: ' ' },
            ...{ imageKey: `https://evil.test/${image}`, backgroundColor: '#FFF' },
            video: video.replace('mp4', 'mov'),
          },
        });
        expect(outfit).toBeNull();
        expect(errors).toContainEqual({ field, code, messages });
        expect(errors).toHaveLength(6);
      },
    );

    test('createOutfit takes null for every field as omitted', async () => {
      const others = ['title', 'description', 'imageOriginalUrl', 'private', 'backgroundColor'];
      const nulls = [...others, 'video', 'device'].map((name) => [name, null]);
      const input = { imageKey: image, ...Object.fromEntries(nulls) };
      const { outfit, errors } = await mutate(owner, 'createOutfit', { input });
      const plain = (await mutate(owner, 'createOutfit', { input: { imageKey: image } })).outfit;
      expect(errors).toEqual([]);
      const own = { id: 0, created: '', modified: '' };
      expect({ ...outfit, ...own }).toEqual({ ...plain, ...own });
      const missing = await mutate(owner, 'createOutfit', { input: { imageKey: null } });
      expect(missing.errors).toEqual([
        { field: 'imageKey', code: 'REQUIRED', messages: ['This field is required.'] },
      ]);
    });

    test('createOutfit only checks when it is asked to', async () => {
      const before = await count();
      const { data } = await ask(
        owner,
        'mutation ($i: CreateOutfitInput!) { createOutfit(input: $i, validateOnly: true) { outfit { id: databaseId } errors { field } } }',
        { i: { imageKey: image } },
      );
      expect(data).toEqual({ createOutfit: { outfit: null, errors: [] } });
      expect(await count()).toBe(before);
    });
  });

  describe('an outfit', () => {
    let id: number;
    beforeEach(async () => {
      id = await newOutfit();
    });

    test('an outfit is changed by its owner, who leaves a moment and a device, and nothing else changes', async () => {
      const before = (await mutate(owner, 'likeOutfit', { id })).outfit;
      const { outfit, errors } = await mutate(owner, 'updateOutfit', {
        id,
        input: { title: 'New', video: null, device: 'ANDROID' },
      });
      expect(errors).toEqual([]);
      expect(outfit).toEqual({
        ...before,
        title: 'New',
        video: null,
        play_video: false,
        modified: expect.any(String),
        modification_device: 'android',
      });
      expect(String(outfit?.['modified']) > String(before?.['modified'])).toBe(true);
    });

    test('an outfit gets a new original together with a new image, unless another is given', async () => {
      const second = image.replace('png', 'jpeg');
      const changed = await mutate(owner, 'updateOutfit', { id, input: { imageKey: second } });
      expect(changed.outfit).toMatchObject({ image_key: second, image_original_url: second });
      const both = { imageKey: second, imageOriginalUrl: image };
      const again = await mutate(owner, 'updateOutfit', { id, input: both });
      expect(again.outfit).toMatchObject({ image_key: second, image_original_url: image });
    });

    test('an outfit keeps what is null in a change, but its video', async () => {
      const { outfit: before } = await mutate(owner, 'likeOutfit', { id });
      const names = ['title', 'description', 'imageKey', 'imageOriginalUrl', 'private'];
      const nulls = [...names, 'backgroundColor', 'device'].map((name) => [name, null]);
      const { outfit, errors } = await mutate(owner, 'updateOutfit', {
        id,
        input: Object.fromEntries([...nulls, ['video', null]]),
      });
      expect(errors).toEqual([]);
      const changed = { modified: expect.any(String), modification_device: 'web' };
      expect(outfit).toEqual({ ...before, ...changed, video: null, play_video: false });
    });

    test('an outfit stays as it is when a change is wrong', async () => {
      const { outfit, errors } = await mutate(owner, 'updateOutfit', {
        id,
        input: { title: 'New', imageKey: '' },
      });
      expect(outfit).toBeNull();
      expect(errors).toMatchObject([{ field: 'imageKey', code: 'BLANK' }]);
      expect((await ask({}, `{ outfit(databaseId: ${id}) { title } }`)).data).toEqual({
        outfit: { title: '' },
      });
    });

    test('an outfit is neither changed nor deleted by another user', async () => {
      const named = `id: "${outfitId(id)}"`;
      for (const field of [`updateOutfit(${named}, input: {})`, `deleteOutfit(${named})`]) {
        expect(await refusal(other, field)).toMatchObject({
          ...{ data: null, code: 'FORBIDDEN' },
          message: `Outfit ${id} belongs to another user.`,
        });
      }
      expect((await ask({}, `{ outfit(databaseId: ${id}) { id: databaseId } }`)).data).toEqual({
        outfit: { id },
      });
    });

    test('an outfit is deleted by its owner, with the likes that it had', async () => {
      await mutate(other, 'likeOutfit', { id });
      const before = await count();
      const named = `id: "${outfitId(id)}"`;
      const gone = await ask(owner, `mutation { deleteOutfit(${named}) { deletedOutfitId } }`);
      expect(gone.data).toEqual({ deleteOutfit: { deletedOutfitId: outfitId(id) } });
      expect(await count()).toBe(before - 1);
      for (const field of ['deleteOutfit', 'likeOutfit', 'unlikeOutfit']) {
        expect((await refusal(owner, `${field}(${named})`)).code).toBe('NOT_FOUND');
      }
    });

    test('an outfit is written by its number as by its id, but not by both or neither', async () => {
      const written = async (argument: string) => {
        const fields = 'outfit { databaseId } }';
        const { data, errors } = await ask(
          owner,
          `mutation { a: likeOutfit${argument && `(${argument})`} { ${fields}
            b: unlikeOutfit${argument && `(${argument})`} { ${fields}
            c: updateOutfit(${argument} input: {}) { ${fields} }`,
        );
        return errors?.map(({ message }) => message) ?? data;
      };
      const done = { outfit: { databaseId: id } };
      const named = `id: "${outfitId(id)}"`;
      const numbered = `databaseId: ${id}`;
      expect(await written(named)).toEqual({ a: done, b: done, c: done });
      expect(await written(numbered)).toEqual({ a: done, b: done, c: done });
      const oneOfBoth = Array(3).fill('Give exactly one of id and databaseId.');
      expect(await written('')).toEqual(oneOfBoth);
      expect(await written(`${named}, ${numbered}`)).toEqual(oneOfBoth);
      const gone = await ask(owner, `mutation { deleteOutfit(${numbered}) { deletedOutfitId } }`);
      expect(gone.data).toEqual({ deleteOutfit: { deletedOutfitId: outfitId(id) } });
    });

    test('an outfit is liked once by each user, whatever comes how often, and modified stays', async () => {
      const created = (await mutate(owner, 'likeOutfit', { id })).outfit;
      expect(created).toMatchObject({ likes: 1, modification_device: '' });
      expect(created?.['modified']).toBe(created?.['created']);
      expect((await mutate(owner, 'likeOutfit', { id })).outfit).toMatchObject({ likes: 1 });
      expect((await mutate(other, 'likeOutfit', { id })).outfit).toMatchObject({ likes: 2 });
      const { rows: given } = await gateway.database.pool.query(
        `SELECT count(*)::int AS likes, bool_and(created > extract(epoch FROM now() - interval '1 hour') * 1000000) AS "isNow"
         FROM outfit_likes WHERE outfit_id = $1`,
        [id],
      );
      expect(given).toEqual([{ likes: 2, isNow: true }]);
      expect((await mutate(owner, 'unlikeOutfit', { id })).outfit).toMatchObject({ likes: 1 });
      expect((await mutate(owner, 'unlikeOutfit', { id })).outfit).toMatchObject({ likes: 1 });
    });
  });

  test('a document of several mutations returns what was done when one fails, and reads the state after it', async () => {
    const create = (title: string) =>
      `createOutfit(input: { imageKey: "${image}", title: "${title}" }) { outfit { title user { outfits { count } } } errors { field } }`;
    const before = rows.filter((row) => row.userId === ownerId).length;
    const partly = await ask(
      { ...owner, 'idempotency-key': 'several' },
      `mutation { a: ${create('A')} b: ${create('B')} c: likeOutfit(id: "T3V0Zml0Ojk5OTk5OQ==") { outfit { id: databaseId } } }`,
    );
    expect(partly.status).toBe(200);
    expect(partly.data).toMatchObject({ a: { outfit: { title: 'A' } }, b: null, c: null });
    expect(partly.errors).toMatchObject([
      { path: ['b'], extensions: { code: 'IDEMPOTENCY_KEY_REUSED' } },
      { path: ['c'], extensions: { code: 'NOT_FOUND' } },
    ]);
    const { data } = await ask(owner, `mutation { a: ${create('C')} b: ${create('D')} }`);
    const countOf = (payload: Payload | undefined) =>
      (payload as unknown as { outfit: { user: { outfits: { count: number } } } }).outfit.user
        .outfits.count;
    expect(countOf(data?.['a'])).toBeGreaterThan(before);
    expect(countOf(data?.['b'])).toBe(countOf(data?.['a']) + 1);
  });

  // All other statements are in the storm of counts.test.ts, which does not see numbers that are lost.
  test('SQL of others that gives an outfit another id, owner or visibility keeps the number of its likes', async () => {
    const run = (statement: string) => gateway.database.pool.query(statement);
    const id = await newOutfit();
    const moved = 900_001;
    const others = { private: false, userId: otherId };
    await run(`UPDATE outfit_like_counts SET likes = 7 WHERE id = ${id}`);
    const insert = `INSERT INTO outfits (id, image_key, image_original_key, user_id, created, modified)
      VALUES (${moved}, 'x', 'x', ${otherId}, 0, 0)`;
    for (const [statement, expected] of [
      [
        `UPDATE outfits SET private = true WHERE id = ${id}`,
        { id, private: true, userId: ownerId },
      ],
      [
        `UPDATE outfits SET id = ${moved} WHERE id = ${id}`,
        { id: moved, private: true, userId: ownerId },
      ],
      [
        `${insert} ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, private = false`,
        { id: moved, ...others },
      ],
      // A trigger of the operator has the last word.
      [
        `CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN NEW.private := true; NEW.user_id := ${ownerId}; NEW.title := 'Hidden'; RETURN NEW; END $$;
         CREATE TRIGGER hide BEFORE UPDATE ON outfits FOR EACH ROW EXECUTE FUNCTION hide();
         UPDATE outfits SET quality = 5 WHERE id = ${moved};
         DROP FUNCTION hide CASCADE`,
        { id: moved, private: true, userId: ownerId },
      ],
    ] as const) {
      await run(statement);
      const { rows: found } = await run(
        `SELECT id, private, user_id AS "userId", likes FROM outfit_like_counts WHERE id IN (${id}, ${moved})`,
      );
      expect(found).toEqual([{ likes: 7, ...expected }]);
    }
    const text = `SELECT FROM outfit_texts WHERE outfit_id = ${moved} AND folded LIKE '%hidden%'`;
    expect((await run(text)).rowCount).toBe(1);
    await run(`DELETE FROM outfits WHERE id = ${moved}`);
    for (const check of ['check_outfit_likes', 'check_outfit_counts'])
      expect((await run(`SELECT * FROM ${check}()`)).rows).toEqual([]);
  });

  test('outfits are liked, hidden and deleted concurrently, and the later request finds none', async () => {
    const viewers = await Promise.all(
      [...new Set(rows.map((row) => row.userId))].map((id) => signIn(id)),
    );
    const before = await count();
    for (let round = 0; round < 4; round++) {
      const ids = await Promise.all(Array.from({ length: 4 }, newOutfit));
      const answers = await Promise.all(
        ids.flatMap((id) => {
          const named = `id: "${outfitId(id)}"`;
          const change = (isPrivate: boolean) =>
            refusal(owner, `updateOutfit(${named}, input: { private: ${isPrivate} })`);
          const byAll = (field: string) =>
            viewers.map((viewer) => refusal(viewer, `${field}(${named})`));
          return [
            ...[...byAll('likeOutfit'), change(true), ...byAll('unlikeOutfit'), change(false)],
            ...[...byAll('likeOutfit'), refusal(owner, `deleteOutfit(${named})`)],
            ...[change(true), ...byAll('likeOutfit')],
          ];
        }),
      );
      for (const { status, code = 'NOT_FOUND' } of answers) {
        expect([status, code]).toEqual([200, 'NOT_FOUND']);
      }
      const left = 'SELECT FROM outfit_like_counts WHERE id = ANY($1::int[])';
      expect((await gateway.database.pool.query(left, [ids])).rowCount).toBe(0);
    }
    expect(await count()).toBe(before);
    for (const check of ['check_outfit_likes', 'check_outfit_counts']) {
      expect((await gateway.database.pool.query(`SELECT * FROM ${check}()`)).rows).toEqual([]);
    }
  });

  test('a like that cannot be counted any more is not stored, so that taking it back counts nothing', async () => {
    const id = await newOutfit();
    const most = 2_147_483_647;
    const set = `UPDATE outfit_like_counts SET likes = ${most} WHERE id = ${id}`;
    await gateway.database.pool.query(set);
    expect((await mutate(other, 'likeOutfit', { id })).outfit).toMatchObject({ likes: most });
    expect((await mutate(other, 'unlikeOutfit', { id })).outfit).toMatchObject({ likes: most });
  });

  test('likes go on from the number that was imported: many at once are counted and answered one by one', async () => {
    const { id, likes } = rows.find((row) => row.likes > 0 && !row.private) ?? expect.fail();
    const { pool } = gateway.database;
    const users = Array.from({ length: 30 }, (_, index) => 5000 + index);
    await pool.query(
      `INSERT INTO users (id, username) SELECT id, 'liker' FROM unnest($1::int[]) AS id`,
      [users],
    );
    const viewers = await Promise.all(users.map((user) => signIn(user)));
    const answers = await Promise.all(
      viewers.map((viewer) => mutate(viewer, 'likeOutfit', { id })),
    );
    const counts = answers.map((answer) => Number(answer.outfit?.['likes']));
    expect(counts.toSorted((a, b) => a - b)).toEqual(users.map((_, index) => likes + index + 1));
    await Promise.all(
      viewers.flatMap((viewer, index) =>
        Array.from({ length: 3 }, () =>
          mutate(viewer, index % 2 === 0 ? 'likeOutfit' : 'unlikeOutfit', { id }),
        ),
      ),
    );
    expect(await likesOf(id)).toBe(likes + users.length / 2);
    expect((await pool.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
  });

  test('a like of a user that does not exist is a 401 and is not counted', async () => {
    const id = await newOutfit();
    for (const field of ['likeOutfit', 'unlikeOutfit']) {
      const answer = await refusal(await signIn(999_999), `${field}(id: "${outfitId(id)}")`);
      expect(answer).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
    }
    expect(await likesOf(id)).toBe(0);
  });

  describe('an Idempotency-Key', () => {
    test('lets the same request create one outfit, and answers what it answered first', async () => {
      const headers = { 'idempotency-key': 'first' };
      const first = await post({ image_key: image, title: 'Once' }, headers);
      const { id } = first.json();
      await mutate(other, 'likeOutfit', { id });
      await mutate(owner, 'updateOutfit', { id, input: { title: 'Changed' } });
      const before = await count();
      const again = await post({ title: 'Once', image_key: image }, headers);
      expect([again.statusCode, again.body]).toEqual([201, first.body]);
      await ask(owner, `mutation { deleteOutfit(id: "${outfitId(id)}") { deletedOutfitId } }`);
      expect((await post({ image_key: image, title: 'Once' }, headers)).body).toBe(first.body);
      expect(await count()).toBe(before - 1);
      // As if these fields had been added to the model since.
      await gateway.database.pool.query(
        `UPDATE idempotency_keys SET answer = answer #- '{outfit,quality}' #- '{outfit,background_color}'
         WHERE key = 'first'`,
      );
      const old = await post({ image_key: image, title: 'Once' }, headers);
      expect(old.json()).toEqual({ ...first.json(), quality: 0, background_color: '' });
    });

    test('an Idempotency-Key with another request is a 422, by POST and by GraphQL', async () => {
      const headers = { 'idempotency-key': 'other' };
      expect((await post({ image_key: image }, headers)).statusCode).toBe(201);
      const posted = await post({ image_key: image, title: 'x' }, headers);
      expect(posted.statusCode).toBe(422);
      expect(posted.json().detail).toContain('Idempotency-Key');
      expect((await post({ private: 'maybe' }, headers)).statusCode).toBe(422);
      const { status, errors } = await ask(
        { ...owner, ...headers },
        'mutation ($i: CreateOutfitInput!) { createOutfit(input: $i) { errors { field } } }',
        { i: { imageKey: image, title: 'y' } },
      );
      expect(status).toBe(422);
      expect(errors).toMatchObject([{ extensions: { code: 'IDEMPOTENCY_KEY_REUSED' } }]);
    });

    test('an Idempotency-Key is free again after a day', async () => {
      const headers = { 'idempotency-key': 'yesterday' };
      const first = (await post({ image_key: image }, headers)).json();
      await gateway.database.pool.query(
        'UPDATE idempotency_keys SET created = created - 86400000001 WHERE key = $1',
        ['yesterday'],
      );
      const second = await post({ image_key: image, title: 'Another' }, headers);
      expect(second.statusCode).toBe(201);
      expect(second.json().id).not.toBe(first.id);
    });

    test('an Idempotency-Key is deleted after a day, also of users who send no other request', async () => {
      const { pool } = gateway.database;
      for (const key of ['expired', 'kept'])
        await post({ image_key: image }, { 'idempotency-key': key });
      await pool.query(
        `UPDATE idempotency_keys SET created = created - 86400000001 WHERE key = 'expired'`,
      );
      await deleteExpiredAnswers(pool);
      const { rows } = await pool.query(
        `SELECT key FROM idempotency_keys WHERE key IN ('expired', 'kept')`,
      );
      expect(rows).toEqual([{ key: 'kept' }]);
    });

    test('an Idempotency-Key creates one outfit when the same request comes ten times at once', async () => {
      const before = await count();
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => post({ image_key: image }, { 'idempotency-key': 'ten' })),
      );
      expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([201]));
      expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
      expect(await count()).toBe(before + 1);
    });

    test('an Idempotency-Key belongs to one user, and is not used up by a request that was refused', async () => {
      const headers = { 'idempotency-key': 'mine' };
      expect((await post({ image_key: 'wrong' }, headers)).statusCode).toBe(400);
      const first = await post({ image_key: image }, headers);
      expect(first.statusCode).toBe(201);
      const second = await post({ image_key: image }, { ...headers, ...other });
      expect(second.statusCode).toBe(201);
      expect(second.json().id).not.toBe(first.json().id);
    });

    test.each(['', 'x'.repeat(256), 'caf\u00e9'])(
      'an Idempotency-Key may not be %j',
      async (key) => {
        const response = await post({ image_key: image }, { 'idempotency-key': key });
        expect(response.statusCode).toBe(400);
        expect(response.json().detail).toContain('Idempotency-Key must be');
      },
    );
  });

  describe('ids', () => {
    const highest = 2_147_483_647;
    const last = Math.max(...rows.map(({ id }) => id));
    beforeEach(async () => {
      const ids = rows.map(({ id }) => id);
      await gateway.database.pool.query('DELETE FROM outfits WHERE id <> ALL($1)', [ids]);
      await setSequence(last);
    });

    const publish = async (headers: Record<string, string> = {}): Promise<number> => {
      const response = await post({ image_key: image }, headers);
      expect([response.statusCode, response.body]).toEqual([201, expect.any(String)]);
      return response.json().id;
    };
    const write = (...ids: number[]) =>
      gateway.database.pool.query(
        `INSERT INTO outfits (id, image_key, image_original_key, user_id, created, modified)
         SELECT id, 'x', 'x', $2, 0, 0 FROM unnest($1::int[]) AS id`,
        [ids, ownerId],
      );
    const setSequence = (value: number) =>
      gateway.database.pool.query(`SELECT setval('outfits_id_seq', $1)`, [value]);

    test('ids that others have taken are passed over, with and without a key', async () => {
      await write(last + 1, last + 2, last + 3);
      expect(await publish()).toBe(last + 4);
      await write(last + 5);
      const headers = { 'idempotency-key': 'taken' };
      expect(await publish(headers)).toBe(last + 6);
      expect(await publish(headers)).toBe(last + 6);
      await write(last + 7);
      const many = await Promise.all(Array.from({ length: 8 }, () => publish()));
      expect(new Set(many).size).toBe(8);
      expect(Math.min(...many)).toBeGreaterThan(last + 7);
    });

    test('ids go on in a gap when the sequence is at its end', async () => {
      await setSequence(highest);
      expect(await publish()).toBe(last + 1);
      expect(await publish()).toBe(last + 2);
    });

    test('ids come from the largest gap when the last one is taken', async () => {
      await write(highest, 1_000_000);
      await setSequence(highest - 1);
      expect(await publish()).toBe(1_000_001);
      expect(await publish({ 'idempotency-key': 'gap' })).toBe(1_000_002);
    });
  });
});

const given = 'user_id = $2';
const givenAndHidden = `${given}, private = true`;
test.each([
  { change: given, claims: {}, settings: {}, code: 'FORBIDDEN' },
  { change: givenAndHidden, claims: {}, settings: {}, code: 'FORBIDDEN' },
  { change: givenAndHidden, claims: {}, settings: { PRIVATE_OUTFITS: 'owner' }, code: 'NOT_FOUND' },
  { change: given, claims: { staff: true }, settings: {}, code: undefined },
])(
  'on PostgreSQL, a write that waits for another (SET $change) returns $code, with claims $claims and settings $settings',
  async ({ change, claims, settings, code }) => {
    const environment = { AUTH_JWT_SECRET: secret, AUTH_STAFF_CLAIM: 'staff', ...settings };
    const gateway = await openForTest('PostgreSQL', rows, environment);
    const client = await connectForTest(databaseUrlOf(gateway.database.pool));
    const headers = await signIn(ownerId, 3600, claims);
    const [changed, deleted] = rows.filter((row) => row.userId === ownerId && !row.private);
    const ids = [changed?.id ?? 0, deleted?.id ?? 0] as const;
    await client.query('BEGIN');
    await client.query(`UPDATE outfits SET ${change} WHERE id = ANY($1)`, [ids, otherId]);
    const answers = [
      `updateOutfit(id: "${outfitId(ids[0])}", input: { title: "Taken" }) { outfit { title } }`,
      `deleteOutfit(id: "${outfitId(ids[1])}") { deletedOutfitId }`,
    ].map((field) => gateway.post(`mutation { ${field} }`, {}, headers));
    await expect.poll(() => countBlocked(client)).toBe(2);
    await client.query('COMMIT');
    for (const { errors } of await Promise.all(answers)) {
      expect(errors?.[0]?.extensions?.code).toBe(code);
    }
    const left = await client.query('SELECT id, title FROM outfits WHERE id = ANY($1) ORDER BY 1', [
      ids,
    ]);
    expect(left.rows).toEqual(
      code
        ? [changed, deleted].map((row) => ({ id: row?.id, title: row?.title }))
        : [{ id: ids[0], title: 'Taken' }],
    );
  },
);

test('on PostgreSQL, creates with a key and without one that wait longer than REQUEST_TIMEOUT are a 503, and the key is not used up', async () => {
  const environment = { AUTH_JWT_SECRET: secret, REQUEST_TIMEOUT: '1s' };
  const gateway = await openForTest('PostgreSQL', rows, environment);
  const client = await connectForTest(databaseUrlOf(gateway.database.pool));
  const key = { 'idempotency-key': 'locked' };
  const publish = async (headers: Record<string, string> = {}) =>
    gateway.app.inject({
      method: 'POST',
      url: '/api/outfits/',
      headers: { ...(await signIn(ownerId)), ...headers },
      payload: { image_key: image },
    });
  await client.query('BEGIN; LOCK TABLE outfits');
  for (const { statusCode, headers } of await Promise.all([publish(), publish(key)])) {
    expect([statusCode, headers['retry-after']]).toEqual([503, '1']);
  }
  await expect.poll(() => countBlocked(client)).toBe(0);
  await client.query('COMMIT');
  // On a busy machine, these may take longer, too.
  const count = async () => (await gateway.get('/api/outfits/')).json().count;
  await expect.poll(count).toBe(rows.length);
  await expect.poll(async () => (await publish(key)).statusCode).toBe(201);
});
