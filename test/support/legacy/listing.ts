// A listing to import from, which does what a test sets, and records for it.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

const sixDigits = (id: number) => String(Math.abs(id) % 1_000_000).padStart(6, '0');
export const uuid = (id: number) => `00000000-0000-4000-8000-000000${sixDigits(id)}`;

export function makeRecord(id: number, changes: Record<string, unknown> = {}) {
  const image = `https://media.example.com/outfits/${uuid(id)}.jpeg`;
  return {
    id,
    title: `Outfit ${id} 👗`,
    description: '#summer\n@ann',
    image_key: image,
    image_original_url: image,
    complete: true,
    likes: Math.abs(id) % 7,
    user: makeUser((Math.abs(id) % 5) + 1),
    quality: 3,
    private: id % 4 === 0,
    background_image: null,
    background_color: '#0a9',
    video: id % 3 ? null : `https://video.example.com/outfits_videos/${uuid(id)}.mp4`,
    play_video: id % 3 === 0,
    created: `2024-02-29T12:00:00.${sixDigits(id)}Z`,
    modified: '2024-03-01T00:00:00Z',
    creation_device: 'ios',
    modification_device: '',
    ...changes,
  };
}
export type ListedRecord = ReturnType<typeof makeRecord>;

export function makeUser(id: number, changes: Record<string, unknown> = {}) {
  const avatar_key = id % 2 ? '' : `avatars/${uuid(id)}.gif`;
  return { id, avatar_key, username: `ann_${id}`, first_name: 'Ann', last_name: '', ...changes };
}

/** Records in the default order: newest first. */
export const makeRecords = (number: number) =>
  Array.from({ length: number }, (_, index) => makeRecord(number - index));

export const toLines = (records: readonly unknown[]) =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

export interface AskedPage {
  readonly page: number;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
}

export interface Listing {
  readonly url: string;
  records: ListedRecord[];
  pageSize: number;
  /** Whether it answers for single records, at their ids. */
  hasDetails: boolean;
  /** What the listing counts beyond what it has. */
  uncounted: number;
  /** Takes over an answer: true when it has dealt with the request. */
  intercept: (asked: AskedPage, response: ServerResponse) => boolean;
  /** Called when a page has been answered. */
  afterPage: (page: number) => void;
  /** Paths and pages that were asked for. */
  readonly requests: string[];
  readonly asked: number[];
}

/** A listing as the legacy service serves it; its links name another host, as behind a proxy. */
export async function serveListing(records: ListedRecord[]): Promise<Listing> {
  const server = createServer(({ url: target = '', headers }, response) => {
    const url = new URL(target, 'http://behind-a-proxy.internal');
    const { pageSize, records } = listing;
    const last = Math.max(1, Math.ceil(records.length / pageSize));
    const page = Number(url.searchParams.get('page') ?? 1);
    const [, id] = /\/(\d+)\/$/.exec(url.pathname) ?? [];
    if (id) {
      const shown = listing.hasDetails ? listing.records : [];
      const record = shown.find((one) => one.id === Number(id));
      return response.writeHead(record ? 200 : 404).end(JSON.stringify(record ?? {}));
    }
    listing.requests.push(target);
    listing.asked.push(page);
    if (listing.intercept({ page, url: target, headers }, response)) return;
    response.setHeader('content-type', 'application/json');
    if (!url.pathname.endsWith('/')) {
      return response.writeHead(301, { location: `${url.pathname}/${url.search}` }).end();
    }
    if (page < 1 || page > last) {
      return response.writeHead(404).end('{"detail":"Invalid page."}');
    }
    const link = (other: number) => {
      url.searchParams.set('page', String(other));
      return url.href;
    };
    const body = {
      count: records.length + listing.uncounted,
      next: page < last ? link(page + 1) : null,
      previous: page > 1 ? link(page - 1) : null,
      results: records.slice((page - 1) * pageSize, page * pageSize),
    };
    response.end(JSON.stringify(body));
    return listing.afterPage(page);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const listing: Listing = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/outfits/`,
    records,
    pageSize: 10,
    hasDetails: false,
    uncounted: 0,
    intercept: () => false,
    afterPage: () => {},
    requests: [],
    asked: [],
  };
  return listing;
}
