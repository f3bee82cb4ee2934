// Requests as bytes, for what no library would send.
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Address } from '../faults/clients.ts';
import { portOf } from './listen.ts';

/** The statuses of all answers in it. */
export const statusesIn = (answer: string) =>
  [...answer.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));

/**
 * Sends bytes, given as latin1, to a gateway and gives all that it answers until it closes.
 * @param parts sent one after the other, in packets of their own
 */
export async function sendRaw(app: FastifyInstance, ...parts: string[]): Promise<string> {
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' });
  return sendBytes({ port: portOf(app.server), host: '127.0.0.1' }, ...parts);
}

/** The same to an address. */
export const sendBytes = (address: Address, ...parts: string[]) =>
  new Promise<string>((settle, reject) => {
    let answer = '';
    const socket = connect({ ...address, noDelay: true }, async () => {
      for (const part of parts) {
        socket.write(part, 'latin1');
        await setImmediate();
      }
    });
    socket.setEncoding('utf8').on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', reject).on('close', () => settle(answer));
  });
