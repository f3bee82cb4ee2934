// One of the two services that are compared, asked over HTTP: in exactly the words that are given, and
// with what it answers left as it is.
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { pipeline, type Readable } from 'node:stream';
import { readAtMost } from '../http/read-at-most.ts';
import { maxPageBytes, maxPageSize } from '../import/batch.ts';
import type { Answer } from './compare.ts';
import { createDecoder, toAnswer } from './received.ts';

export interface Side {
  /** Scheme, host and port. */
  readonly base: string;
  /** Its listing. */
  readonly path: string;
  /**
   * Asks for a target as it stands, and follows no redirect.
   * @throws Error when there is no whole answer in time
   */
  ask(method: Method, target: string, signal: AbortSignal): Promise<Answer>;
  close(): unknown;
}

/** Nothing that compares may change anything. */
export type Method = 'GET' | 'HEAD' | 'OPTIONS';

export interface HttpSideOptions {
  /** The listing, or any URL of the service. */
  readonly url: string;
  readonly headers?: Headers;
  /** Milliseconds that a whole answer may take. */
  readonly timeout: number;
}

export function createHttpSide({ url, headers, timeout }: HttpSideOptions): Side {
  const { protocol, origin, pathname } = new URL(url);
  const isSecure = protocol === 'https:';
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true });
  const request = isSecure ? requestHttps : requestHttp;
  // `fetch` would write paths in another way, and hide how a body was encoded.
  const sent = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    ...Object.fromEntries(headers ?? []),
  };
  return {
    base: origin,
    path: pathname,
    ask: (method, target, signal) =>
      new Promise((settle, reject) => {
        signal.throwIfAborted();
        // Node.js would take a target without a leading slash for a part of the path of a proxy.
        const path = target.startsWith('/') ? target : `/${target}`;
        const { hostname, port } = new URL(origin);
        const host = hostname.replace(/^\[|\]$/g, '');
        const asked = request({ host, port, agent, method, path, headers: sent });
        const timer = setTimeout(
          () => asked.destroy(new Error(`no whole answer in ${timeout / 1000} s`)),
          timeout,
        );
        const abort = () => asked.destroy(new Error('aborted'));
        signal.addEventListener('abort', abort);
        const end = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', abort);
        };
        asked.on('response', (response) => {
          // Some send a body all the same, which would be an error behind a connection that closes.
          if (method === 'HEAD') {
            end();
            response.on('error', () => {}).resume();
            settle(toAnswer(response.statusCode ?? 0, response.headers, Buffer.alloc(0)));
            return;
          }
          readAnswer(response).then(settle, reject).finally(end);
        });
        asked.on('error', (error) => {
          end();
          reject(error);
        });
        asked.end();
      }),
    close: () => agent.destroy(),
  };
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const body = await readAtMost(decode(response), maxPageBytes);
  if (!body) {
    response.destroy();
    throw new Error(`more than ${maxPageSize} for one answer`);
  }
  return toAnswer(response.statusCode ?? 0, response.headers, body);
}

function decode(response: IncomingMessage): Readable {
  const decoder = createDecoder(response.headers['content-encoding']);
  // The callback is where an error would go that the reader of the last stream gets anyway.
  return decoder ? pipeline(response, decoder, () => {}) : response;
}
