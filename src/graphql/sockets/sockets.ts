// WebSocket connections at /graphql: who may open one, how many there are, and how their operations are admitted.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws';
import type { GraphQLParams } from 'graphql-yoga';
import { type ServerOptions, WebSocketServer } from 'ws';
import {
  type Admissible,
  type Admit,
  type Place,
  Places,
  RequestCaller,
  shareOfHeap,
} from '../../admission/admission.ts';
import { isFromTrustedOrigin, type OriginConfig } from '../../admission/credentials.ts';
import { takeTurnToParse } from '../../database/turns.ts';
import type { HttpError } from '../../errors.ts';
import { bytesOfHead } from '../../http/headers.ts';
import { routeHandshakes } from '../../http/server/server.ts';
import type { Answered, ObserveAnswer } from '../../observability/log.ts';
import type { Engine } from '../engine.ts';
import { originNotAllowed, toHttpError, tooManySockets, transportNotAvailable } from '../errors.ts';
import type { LiveAnswers } from '../live/live.ts';
import { LiveStream } from '../live/live-stream.ts';
import { type EncodedAnswer, encodingOf, eventType, Run, refusalOf } from '../run.ts';
import { type Answers, closeCodes, type Endpoint, SocketConnection } from './connection.ts';

const tickInterval = 5_000;

export interface SocketOptions {
  readonly engine: Engine;
  readonly admit: Admit;
  readonly config: OriginConfig & { readonly maxSockets: number };
  readonly live: LiveAnswers;
  readonly observe: ObserveAnswer;
}

type Handshake = Pick<FastifyRequest, 'headers' | 'host' | 'ip' | 'log' | 'protocol'>;

/** An operation as the request that it would be over HTTP. */
type SocketRequest = Handshake &
  Pick<FastifyRequest, 'method' | 'operationName' | 'signal' | 'url' | 'viewer'> &
  Pick<Answered, 'routeOptions'> &
  Pick<Admissible, 'raw'>;

/** `open` takes an admitted handshake; `drain` closes each connection behind the answers to what it has begun. */
export function createSockets(app: FastifyInstance, path: string, options: SocketOptions) {
  const { admit, config, engine, live, observe } = options;
  const upgrades = routeHandshakes(app, path);
  const server = new WebSocketServer({
    ...{ noServer: true, clientTracking: false, autoPong: false },
    ...{ maxPayload: 1_048_576, maxBufferedChunks: 16_384 },
    // A message after the other, between which others have their turn.
    ...{
      closeTimeout: 2_000,
      allowSynchronousEvents: false,
      handleProtocols: () => GRAPHQL_TRANSPORT_WS_PROTOCOL,
    },
  } as ServerOptions);
  server.on('wsClientError', () => {
    throw transportNotAvailable(true);
  });
  const connections = new Set<SocketConnection>();
  const places = new Places({ places: config.maxSockets, bytes: shareOfHeap() });
  const timer = setInterval(() => {
    for (const connection of connections) connection.tick();
  }, tickInterval).unref();
  app.addHook('onClose', async () => clearInterval(timer));

  /** Logs and counts it as the request that it would be over HTTP, unless its client has left it. */
  const observeRequest = (request: SocketRequest, status: number, begun: number): void => {
    if (!request.signal.aborted) observe(request, status, performance.now() - begun);
  };

  /** @throws HttpError */
  const admitRequest = async (request: SocketRequest, place: Place): Promise<void> => {
    const begun = performance.now();
    try {
      request.viewer = await admit(request, { headers: () => {} });
      place.moveTo(new RequestCaller(request).sender);
    } catch (error) {
      const refused = toHttpError(app, request.log, error);
      observeRequest(request, refused.status, begun);
      throw refused;
    }
  };

  const answer = async (
    request: SocketRequest,
    params: GraphQLParams,
    text: string,
    place: Place,
  ): Promise<Answers> => {
    const begun = performance.now();
    try {
      await admitRequest(request, place);
    } catch (error) {
      const refused = error as HttpError;
      // The credential of a connection is fixed.
      if (refused.status === 401) throw refused;
      return refusalOf(refused);
    }
    const caller = new RequestCaller(request);
    const run = new Run(encodingOf(eventType, `ws ${text}`), caller);
    run.openLive = (operation, variables) => live.open(operation, variables, caller, 'ws');
    let status = 200;
    try {
      const reading = await engine.serve<EncodedAnswer>(run, 'POST', () => params);
      return run.answers instanceof LiveStream ? run.answers : reading.answer;
    } catch (error) {
      const refused = toHttpError(app, request.log, error);
      status = refused.status;
      return refusalOf(refused);
    } finally {
      request.operationName = run.operationName;
      observeRequest(request, status, begun);
    }
  };

  const createEndpoint = (handshake: Handshake, place: Place): Endpoint => {
    const never = new AbortController().signal;
    let { headers } = handshake;
    const requestFor = (signal: AbortSignal): SocketRequest => ({
      ...handshake,
      ...{ headers, signal, viewer: undefined, operationName: undefined },
      ...{ method: 'POST', url: path, routeOptions: { url: path } },
      // What is repeated in the handshake was refused there.
      raw: { rawHeaders: [] },
    });
    return {
      connect: async (parameters) => {
        headers = { ...headers, ...parameters };
        // The credentials of the handshake have been judged.
        if (Object.keys(parameters).length === 0) return;
        await admitRequest(requestFor(never), place);
      },
      answer: (params, text, signal) => answer(requestFor(signal), params, text, place),
      fail: (error) => handshake.log.error({ err: error }, 'unexpected error'),
      takeTurn: (bytes) => takeTurnToParse(bytes, { sender: place.sender }),
    };
  };

  /** @throws HttpError 400, 403 or 503 */
  const open = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const { raw, headers, host, ip, log, protocol } = request;
    const upgrade = upgrades.get(raw);
    const protocols = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim());
    if (!upgrade || !protocols?.includes(GRAPHQL_TRANSPORT_WS_PROTOCOL)) {
      throw transportNotAvailable(true);
    }
    const isTrusted = isFromTrustedOrigin(request, config);
    // CORS does not hold for WebSockets: any page could read what it keeps from them.
    if (headers.origin !== undefined && !isTrusted && !config.corsOrigins.includes('*')) {
      throw originNotAllowed();
    }
    const { sender } = new RequestCaller(request);
    let connection: SocketConnection | undefined;
    const kept = bytesOfHead(raw);
    const makeRoom = () => connection?.close(closeCodes.tryAgainLater);
    const place = places.take(sender, kept, makeRoom);
    if (!place) throw tooManySockets();
    upgrade.socket.once('close', () => place.release());
    const handshake = { headers: headersFor(request, isTrusted), host, ip, log, protocol };
    const endpoint = createEndpoint(handshake, place);
    // In this turn: what the library refuses is thrown from here.
    server.handleUpgrade(raw, upgrade.socket, upgrade.head, (socket) => {
      const opened = new SocketConnection(socket, endpoint, place, kept);
      connection = opened;
      connections.add(opened);
      upgrade.socket.on('data', ({ length }) => opened.onBytes(length));
      socket.once('close', () => connections.delete(opened));
    });
    reply.hijack();
    reply.raw.detachSocket(upgrade.socket);
    // The request has ended for all that follow it.
    reply.raw.emit('close');
    return reply;
  };

  const drain = () => {
    for (const connection of connections) connection.drain();
  };
  return { open, drain };
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
  return Object.fromEntries(kept);
}
