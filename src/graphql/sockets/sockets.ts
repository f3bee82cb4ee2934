// WebSocket connections at /graphql: who may open one, how many there are, and the requests of their operations.
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws';
import { type ServerOptions, WebSocketServer } from 'ws';
import { RequestCaller } from '../../admission/admission.ts';
import { isFromTrustedOrigin, type OriginConfig } from '../../admission/cookies.ts';
import { bytesOfHead, type Place, Places, shareOfHeap } from '../../http/places.ts';
import { routeHandshakes } from '../../http/server/upgrades.ts';
import { originNotAllowed, tooManySockets, transportNotAvailable } from '../errors.ts';
import { type Ask, SocketConnection, type SocketOperation } from './connection.ts';

const tickInterval = 5_000;
/** Names the operation of an inner request. Its values cannot be guessed, so no client has one. */
const operationHeader = 'x-socket-operation';

export type SocketConfig = OriginConfig & { readonly maxSockets: number };

/**
 * Each operation is a request of its own to the endpoint, so that every rule of requests holds for it: admission, rate
 * limit, trusted documents, limits, metrics, log. Not the server of graphql-ws, only its messages: it encodes an answer
 * again for each subscriber, and cannot end an operation that waits.
 */
export class Sockets {
  readonly #upgrades;
  readonly #server = new WebSocketServer({
    ...{ noServer: true, clientTracking: false, autoPong: false, maxPayload: 1_048_576 },
    // A message after the other, between which others have their turn.
    ...{
      closeTimeout: 2_000,
      allowSynchronousEvents: false,
      handleProtocols: () => GRAPHQL_TRANSPORT_WS_PROTOCOL,
    },
  } as ServerOptions);
  readonly #connections = new Set<SocketConnection>();
  readonly #places: Places;
  /** Inner requests. */
  readonly #asked = new Map<
    unknown,
    { readonly place: Place; readonly operation: SocketOperation | undefined }
  >();

  constructor(
    private readonly app: FastifyInstance,
    private readonly path: string,
    private readonly config: SocketConfig,
  ) {
    this.#upgrades = routeHandshakes(app, path);
    this.#places = new Places({ places: config.maxSockets, bytes: shareOfHeap() });
    this.#server.on('wsClientError', () => {
      throw transportNotAvailable(true);
    });
    app.addHook('onRequest', (request, _reply, done) => {
      const operation = this.#asked.get(request.headers[operationHeader])?.operation;
      if (operation) {
        operation.leave = () => request.raw.socket.emit('close');
        request.body = operation.takePayload();
        request.deliverEvents = (events) => operation.deliver(events);
      }
      done();
    });
    app.addHook('preHandler', (request, _reply, done) => {
      const asked = this.#asked.get(request.headers[operationHeader]);
      asked?.place.moveTo(new RequestCaller(request).sender);
      done();
    });
    const timer = setInterval(() => {
      for (const connection of this.#connections) connection.tick();
    }, tickInterval).unref();
    app.addHook('preClose', async () => {
      for (const connection of this.#connections) connection.drain();
    });
    app.addHook('onClose', async () => clearInterval(timer));
  }

  /** Opens the connection of an admitted handshake. @throws HttpError 400, 403 or 503 */
  open(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { raw, headers } = request;
    const { corsOrigins } = this.config;
    const upgrade = this.#upgrades.get(raw);
    const protocols = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim());
    if (!upgrade || !protocols?.includes(GRAPHQL_TRANSPORT_WS_PROTOCOL)) {
      throw transportNotAvailable(true);
    }
    const isTrusted = isFromTrustedOrigin(request, this.config);
    // CORS does not hold for WebSockets: any page could read what it keeps from them.
    if (headers.origin !== undefined && !isTrusted && !corsOrigins.includes('*')) {
      throw originNotAllowed();
    }
    const { sender } = new RequestCaller(request);
    let connection: SocketConnection | undefined;
    const place = this.#places.take(sender, bytesOfHead(raw), () => connection?.makeRoom());
    if (!place) throw tooManySockets();
    upgrade.socket.once('close', () => place.release());
    const ask = this.#askAs(request, isTrusted, place);
    const { log } = request;
    const onFailure = (err: unknown) => log.error({ err }, 'unexpected error');
    // In this turn: what the library refuses is thrown from here.
    this.#server.handleUpgrade(raw, upgrade.socket, upgrade.head, (socket) => {
      const opened = new SocketConnection(socket, ask, onFailure, place, bytesOfHead(raw));
      connection = opened;
      this.#connections.add(opened);
      upgrade.socket.on('data', ({ length }) => opened.onBytes(length));
      socket.once('close', () => this.#connections.delete(opened));
    });
    reply.hijack();
    reply.raw.detachSocket(upgrade.socket);
    // The request has ended for all that follow it.
    reply.raw.emit('close');
    return reply;
  }

  #askAs(request: FastifyRequest, isTrusted: boolean, place: Place): Ask {
    const { remoteAddress = '' } = request.raw.socket;
    const own = headersFor(request, isTrusted);
    return (parameters, operation) => {
      const key = randomUUID();
      const headers = { ...own, ...parameters, [operationHeader]: key };
      const method = operation ? 'POST' : 'OPTIONS';
      const asked = { url: this.path, remoteAddress, headers, method } as const;
      this.#asked.set(key, { place, operation });
      // It fails when it is cut off: the gateway is stopped, say.
      const answer = this.app.inject(asked).catch(() => ({ statusCode: 503, body: '' }));
      return answer.finally(() => this.#asked.delete(key));
    };
  }
}

/** Headers of the handshake alone. */
const ofHandshake =
  /^(?:accept.*|access-control-.*|connection|content-.*|idempotency-key|if-.*|sec-websocket-.*|transfer-encoding|upgrade|x-request-id)$/;

/** Without credentials that browsers add to the handshake of any page: cookies, and passwords that they have kept. */
function headersFor({ headers }: FastifyRequest, isTrusted: boolean): IncomingHttpHeaders {
  const isByPage = headers.origin !== undefined && !/^bearer /i.test(headers.authorization ?? '');
  const kept = Object.entries(headers).filter(([name]) => {
    if (name === 'cookie') return isTrusted;
    return name === 'authorization' ? isTrusted || !isByPage : !ofHandshake.test(name);
  });
  const accept = 'text/event-stream';
  return { 'user-agent': undefined, ...Object.fromEntries(kept), accept };
}
