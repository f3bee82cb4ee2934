// An old service to switch from: what Django REST Framework does with this listing, and faults that
// can be switched on. It shares no code with the gateway.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

export interface LegacyRecord {
  id: number;
  title: string;
  image_key: string;
  image_original_url: string;
  likes: number;
  created: string;
  modified: string;
  user: { id: number; username: string; [field: string]: unknown };
  [field: string]: unknown;
}

/** What can be wrong with it. Those of one page concern the second one, those of a record id 7. */
export type Fault =
  | 'wrong count'
  | 'another order of records'
  | 'another value'
  | 'missing header'
  | 'slow'
  | 'hanging'
  | 'closing early'
  | 'cut short'
  | 'errors'
  | 'gzip';

export interface LegacyRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface LegacyService {
  readonly base: string;
  readonly url: string;
  records: LegacyRecord[];
  pageSize: number;
  /** What the listing counts beyond what it has. */
  uncounted: number;
  fault: Fault | undefined;
  /** Whether records that share what they are sorted by come in the order of their ids. */
  tieBreak: boolean;
  /** An origin whose pages may read answers and send these methods, as django-cors-headers says it. */
  cors: { readonly origin: string; readonly methods: string } | undefined;
  /** Whether it has the path of single records: GET, PATCH, DELETE, and POST and DELETE of `like/`. */
  hasDetails: boolean;
  /** Called when a record is read by itself, before it is sent. */
  onRead: (id: number) => Promise<void> | void;
  /** Orderings that it passes over as if it did not know them. */
  readonly unknown: Set<string>;
  /** Ids that it leaves out of its pages, although they count. */
  readonly hidden: Set<number>;
  /** Answers a request in its own way, or true when it has dealt with it; false or undefined: as usual. */
  intercept:
    | ((
        asked: Asked,
        response: ServerResponse,
      ) => readonly [status: number, headers: object, body: unknown] | boolean | undefined)
    | undefined;
  /** Called when a page has been answered. */
  afterPage: (page: number) => void;
  readonly requests: LegacyRequest[];
  /** Pages of the listing that were asked for. */
  readonly asked: number[];
  close(): Promise<void>;
}

interface Asked {
  readonly method: string;
  readonly url: URL;
  /** That of the listing; 0 of another path. */
  readonly page: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

const allow = { Allow: 'GET, POST, HEAD, OPTIONS', Vary: 'Accept' };
const orderings: Readonly<Record<string, (record: LegacyRecord) => number | string>> = {
  like_count: ({ likes }) => likes,
  created: ({ created }) => created,
  modified: ({ modified }) => modified,
  id: ({ id }) => id,
};

/** Milliseconds that a slow service takes. */
const delay = 700;

/**
 * @param isSorted whether it sorts its records, or has them in their order
 * @param origin of its links; otherwise that under which it was asked
 */
export async function startLegacyService(
  records: LegacyRecord[],
  { pageSize = 20, port = 0, isSorted = true, origin = '' } = {},
): Promise<LegacyService> {
  const held = new Set<ServerResponse>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method = '', url: target = '', headers } = request;
    service.requests.push({ method, target, headers, body });
    const { fault } = service;
    if (fault === 'hanging') return held.add(response);
    if (fault === 'slow') await new Promise((settle) => setTimeout(settle, delay));
    if (fault === 'closing early') return request.socket.destroy();
    if (fault === 'errors') return send(response, 500, {}, '<h1>Server Error (500)</h1>');
    if (service.cors) {
      response.setHeader('Vary', 'Accept, Origin');
      const { origin, methods } = service.cors;
      if (headers.origin === origin) response.setHeader('Access-Control-Allow-Origin', origin);
      if (method === 'OPTIONS' && headers['access-control-request-method'] !== undefined) {
        if (headers.origin === origin) response.setHeader('Access-Control-Allow-Methods', methods);
        return response.end();
      }
    }
    const url = new URL(target, service.base);
    const isListed = url.pathname === '/api/outfits/';
    const page = isListed ? Number(url.searchParams.get('page') ?? 1) : 0;
    if (isListed) service.asked.push(page);
    return answer({ method, url, page, headers, body }, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');

  function answer(asked: Asked, response: ServerResponse) {
    const { method, url, headers } = asked;
    const own = service.intercept?.(asked, response);
    if (own === true) return;
    if (own) return sendJson(response, own[0], { ...allow, ...own[1] }, own[2]);
    const isRead = method === 'GET' || method === 'HEAD';
    const isUser = headers.authorization === 'Token abc';
    if (!isUser && /^Token /.test(headers.authorization ?? '') && method === 'OPTIONS') {
      return sendJson(response, 401, allow, { detail: 'Invalid token.' });
    }
    if (url.pathname === '/whoami/') {
      const [status, body] = isUser ? [200, { id: 3 }] : [401, { detail: 'Invalid token.' }];
      return sendJson(response, status, { 'WWW-Authenticate': 'Token' }, body);
    }
    if (url.pathname === '/api/outfits') {
      return send(response, 301, { Location: `/api/outfits/${url.search}` }, '');
    }
    // A path that the gateway does not have: it gives back what it was sent.
    if (url.pathname === '/api/echo/') {
      const sent = { 'Content-Type': headers['content-type'] ?? 'text/plain', 'X-Legacy': 'yes' };
      return send(response, 200, sent, asked.body);
    }
    const [, id, like] = /^\/api\/outfits\/(\d+)\/(like\/)?$/.exec(url.pathname) ?? [];
    if (id && service.hasDetails) return detail(Number(id), like !== undefined, asked, response);
    if (url.pathname !== '/api/outfits/') {
      return sendJson(response, 404, {}, { detail: 'Not found.' });
    }
    if (!/^$|json|\*\/\*/.test(headers.accept ?? '')) {
      const detail = 'Could not satisfy the request Accept header.';
      return sendJson(response, 406, allow, { detail });
    }
    if (method === 'OPTIONS') {
      const type = ['application/json'];
      const described = { name: 'Outfit List', description: '', renders: type, parses: type };
      const actions = isUser ? { actions: { POST: {} } } : {};
      return sendJson(response, 200, allow, { ...described, ...actions });
    }
    if (method === 'POST') return create(asked.body, response);
    if (!isRead) {
      return sendJson(response, 405, allow, { detail: `Method "${method}" not allowed.` });
    }
    return list(url, headers, response);
  }

  async function detail(
    id: number,
    isLike: boolean,
    { method, body }: { method: string; body: Buffer },
    response: ServerResponse,
  ) {
    const { records } = service;
    const index = records.findIndex((record) => record.id === id);
    const record = records[index];
    if (!record) return sendJson(response, 404, allow, { detail: 'Not found.' });
    if (isLike) record.likes += method === 'DELETE' ? -1 : 1;
    else if (method === 'PATCH') Object.assign(record, JSON.parse(body.toString()));
    else if (method === 'DELETE') records.splice(index, 1);
    if (method === 'DELETE') return send(response, 204, allow, '');
    const shown = { ...record };
    if (method === 'GET') await service.onRead(id);
    return sendJson(response, 200, allow, shown);
  }

  function create(body: Buffer, response: ServerResponse) {
    const { records } = service;
    const id = Math.max(0, ...records.map((record) => record.id)) + 1;
    const created = new Date().toISOString().replace('Z', '000Z');
    const sent = JSON.parse(body.toString()) as object;
    const record = { ...makeRecord(id), created, modified: created, likes: 0, ...sent };
    records.push(record);
    return sendJson(response, 201, allow, record);
  }

  function list(url: URL, headers: IncomingMessage['headers'], response: ServerResponse) {
    const { fault, records, pageSize, tieBreak, unknown } = service;
    const shown = isSorted ? sort(records, url, tieBreak, unknown) : [...records];
    const last = Math.max(1, Math.ceil(shown.length / pageSize));
    const asked = url.searchParams.getAll('page').at(-1);
    const page = asked === 'last' ? last : asked ? toInteger(asked) : 1;
    if (!Number.isInteger(page) || page < 1 || page > last) {
      return sendJson(response, 404, allow, { detail: 'Invalid page.' });
    }
    const link = (target: number) => {
      const query = new URLSearchParams(url.searchParams);
      // As Django REST Framework does, the first page has no number.
      if (target === 1) query.delete('page');
      else query.set('page', String(target));
      query.sort();
      // As Django does that is told of its proxy.
      const base = origin || `${headers['x-forwarded-proto'] ?? 'http'}://${headers.host}`;
      const search = query.size > 0 ? `?${quote(query)}` : '';
      return `${base}${url.pathname}${search}`;
    };
    const results = shown
      .slice((page - 1) * pageSize, page * pageSize)
      .filter(({ id }) => !service.hidden.has(id))
      .map(spoil);
    if (fault === 'another order of records' && page === 2) results.reverse();
    const envelope = {
      count: shown.length + service.uncounted + (fault === 'wrong count' ? 1 : 0),
      next: page < last ? link(page + 1) : null,
      previous: page > 1 ? link(page - 1) : null,
      results,
    };
    sendJson(response, 200, allow, envelope);
    return service.afterPage(page);
  }

  const spoil = (record: LegacyRecord) =>
    record.id === 7 && service.fault === 'another value' ? { ...record, title: 'spoilt' } : record;

  function sendJson(response: ServerResponse, status: number, headers: object, value: unknown) {
    const text = JSON.stringify(value).replace(/[\u2028\u2029]/g, toEscape);
    return send(response, status, { 'Content-Type': 'application/json', ...headers }, text);
  }

  function send(
    response: ServerResponse,
    status: number,
    headers: Record<string, string>,
    body: string | Buffer,
  ) {
    const sent = { ...headers };
    if (service.fault === 'missing header') delete sent['Vary'];
    if (service.fault === 'gzip') sent['Content-Encoding'] = 'gzip';
    const bytes = service.fault === 'gzip' ? gzipSync(body) : Buffer.from(body);
    response.writeHead(status, { ...sent, 'Content-Length': bytes.length });
    if (service.fault === 'cut short' && bytes.length > 100) {
      response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
    } else response.end(bytes);
  }

  const { port: taken } = server.address() as AddressInfo;
  const base = `http://127.0.0.1:${taken}`;
  const service: LegacyService = {
    base,
    url: `${base}/api/outfits/`,
    records,
    pageSize,
    uncounted: 0,
    fault: undefined,
    tieBreak: true,
    cors: undefined,
    hasDetails: false,
    onRead: () => {},
    intercept: undefined,
    afterPage: () => {},
    unknown: new Set(),
    hidden: new Set(),
    requests: [],
    asked: [],
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return service;
}

/** Python's int(). */
const toInteger = (text: string) => (/^\s*[+-]?\d+\s*$/.test(text) ? Number(text) : Number.NaN);

/** Python's quote_plus() keeps `~` and not `*`; URLSearchParams does the opposite. */
const quote = (query: URLSearchParams) => `${query}`.replaceAll('*', '%2A').replaceAll('%7E', '~');

const toEscape = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Like Django's OrderingFilter: what it does not know leaves the default order. */
function sort(
  records: readonly LegacyRecord[],
  { searchParams }: URL,
  tieBreak: boolean,
  unknown: ReadonlySet<string>,
): LegacyRecord[] {
  const asked = searchParams.getAll('ordering').at(-1) ?? '';
  // As Django REST Framework does: by all fields that it knows, and in the default order without any.
  const given = asked.split(',').map((term) => ({ field: term.replace(/^-/, ''), term }));
  const found = given.filter(({ field }) => Object.hasOwn(orderings, field) && !unknown.has(field));
  const terms = found.length > 0 ? found : [{ field: 'created', term: '-created' }];
  const keys = terms.map(({ field, term }) => ({
    sign: term.startsWith('-') ? -1 : 1,
    key: orderings[field],
  }));
  const [{ sign: direction } = { sign: 1 }] = keys;
  const compare = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0);
  return [...records].sort((a, b) => {
    for (const { sign, key } of keys) {
      const order = compare(key?.(a) ?? 0, key?.(b) ?? 0);
      if (order !== 0) return sign * order;
    }
    return tieBreak ? direction * compare(a.id, b.id) : 0;
  });
}

export const uuid = (id: number) =>
  `00000000-0000-4000-8000-${String(Math.abs(id)).padStart(12, '0')}`;

export function makeUser(id: number, changes: Record<string, unknown> = {}) {
  const avatar_key = id % 2 ? '' : `avatars/${uuid(id)}.gif`;
  return { id, avatar_key, username: `ann_${id}`, first_name: 'Ann', last_name: 'Ω', ...changes };
}

/** A record as the listing shows it; the same for the same id. One in ten has no microseconds. */
export function makeRecord(id: number, changes: Record<string, unknown> = {}): LegacyRecord {
  const number = Math.abs(id);
  const image = `https://media.example.com/outfits/${uuid(id)}.jpeg`;
  const hasVideo = id % 3 === 0;
  const minutes = (id % 10_000_000) * 61_000;
  const moment = new Date(1_600_000_000_000 + minutes).toISOString().slice(0, 19);
  const fraction = id % 10 === 0 ? '' : `.${String((number * 7919) % 1_000_000).padStart(6, '0')}`;
  return {
    id,
    title: ['Été à Paris', 'さくら 🌸', 'line\u2028break', 'plain', 'ריקוד'][id % 5] ?? '',
    description: id % 2 ? '#summer with @ann\nline two' : '',
    image_key: image,
    image_original_url: image,
    complete: true,
    likes: (number * 31) % 17,
    user: makeUser((number % 5) + 1),
    quality: (number % 4) + 2,
    private: id % 4 === 0,
    background_image: null,
    background_color: id % 2 ? '#0a9' : '',
    video: hasVideo ? `https://video.example.com/outfits_videos/${uuid(id)}.mp4` : null,
    play_video: hasVideo,
    created: `${moment}${fraction}Z`,
    modified: `${moment}${fraction}Z`,
    creation_device: 'ios',
    modification_device: '',
    ...changes,
  };
}

/** The oldest first. */
export const makeRecords = (count: number) =>
  Array.from({ length: count }, (_, index) => makeRecord(index + 1));
