// Clients that misbehave, come in large numbers, or keep the database from answering.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { connectTo } from '../databases/connections.ts';

export interface Address {
  readonly port: number;
  readonly host: string;
}

export function addressOf(base: string): Address {
  const { hostname, port } = new URL(base);
  return { host: hostname, port: Number(port) };
}

/** Connects, sends some text and then nothing more. */
export async function sendPart(address: Address, text: string): Promise<Socket> {
  const socket = connect({ ...address, noDelay: true }).on('error', () => {});
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Asks for more than fits into the buffers on the way (of large pages), and reads none of it. */
export async function readNothing(address: Address): Promise<Socket> {
  const request = 'GET /api/outfits/ HTTP/1.1\r\nHost: shop.test\r\n\r\n';
  const socket = await sendPart(address, request);
  socket.pause();
  for (let time = 0; time < 100; time += 1) {
    await sleep(10);
    socket.write(request);
  }
  return socket;
}

/**
 * Makes lists wait.
 * @returns what lets them go on
 */
export async function lockOutfits(databaseUrl: string): Promise<() => Promise<void>> {
  const client = await connectTo(databaseUrl);
  await client.query('BEGIN; LOCK TABLE outfits IN ACCESS EXCLUSIVE MODE');
  return () => client.end();
}

/** Statements of requests that wait for a lock, not those that keep the counts; `watcher` may be in a transaction. */
export async function countBlocked(watcher: pg.Client): Promise<number> {
  // Within a transaction the view would stay as it was when first read.
  const { rows } = await watcher.query(
    `SELECT pg_stat_clear_snapshot(), (
       SELECT count(*)::int FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'outfit-gateway' AND state = 'active' AND wait_event_type = 'Lock'
         AND query !~ 'apply_pending_outfit_changes|check_outfit_counts'
     ) AS count`,
  );
  return rows[0].count;
}

export interface Answer {
  readonly status: number;
  readonly head: string;
  readonly milliseconds: number;
}

/** What became of the requests of the clients. */
export interface Outcome {
  readonly answers: Answer[];
  /** Answers that broke off after their first byte. */
  broken: number;
}

/**
 * Keeps `clients` connections busy with one request at a time until `signal` is aborted, or the
 * server does not listen any more. A connection that the server closes after an answer is opened again.
 */
export async function keepBusy(
  address: Address,
  clients: number,
  path: string,
  signal: AbortSignal,
): Promise<Outcome> {
  const outcome: Outcome = { answers: [], broken: 0 };
  const visit = async () => {
    while (!signal.aborted && (await useConnection(address, path, signal, outcome))) {}
  };
  await Promise.all(Array.from({ length: clients }, visit));
  return outcome;
}

/** @returns whether it is worth to connect again */
function useConnection(
  address: Address,
  path: string,
  signal: AbortSignal,
  outcome: Outcome,
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...address, noDelay: true });
    let refused = false;
    let waiting = false;
    let received = '';
    let sentAt = 0;
    const send = () => {
      if (signal.aborted || socket.destroyed) return socket.destroy();
      waiting = true;
      received = '';
      sentAt = performance.now();
      return socket.write(`GET ${path} HTTP/1.1\r\nHost: shop.test\r\n\r\n`);
    };
    socket.setEncoding('latin1');
    socket.on('connect', send);
    socket.on('data', (chunk) => {
      received += chunk;
      const head = received.slice(0, received.indexOf('\r\n\r\n') + 4);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (head.length < 4 || received.length < head.length + length) return;
      waiting = false;
      const milliseconds = performance.now() - sentAt;
      outcome.answers.push({ status: Number(head.slice(9, 12)), head, milliseconds });
      if (/connection: close/i.test(head)) return;
      send();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      refused = error.code === 'ECONNREFUSED';
    });
    socket.on('close', () => {
      if (waiting && received) outcome.broken += 1;
      resolve(!refused);
    });
  });
}
