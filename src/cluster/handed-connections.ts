// The connections that node:cluster is handing to a worker. It forgets the one that was on its way when the
// worker dies: nobody answers or closes it, and its client waits for ever.
import type { Worker } from 'node:cluster';

/** What node:cluster hands over: a handle of the system. */
interface Connection {
  close(): void;
}

/** What node:cluster tells a worker, with a number, and what it hears of that: taken or not, it is settled. */
interface Told {
  readonly seq?: unknown;
}
interface Heard {
  readonly ack?: unknown;
}

/** Closes what was on its way to a worker that has ended, so that its client asks again. */
export function closeWhatIsLost(worker: Worker): void {
  const { process: child } = worker;
  const onTheWay = new Map<unknown, Connection>();
  const send = child.send.bind(child) as (...given: unknown[]) => boolean;
  child.send = (message: Told, connection?: unknown, ...rest: unknown[]) => {
    if (isConnection(connection)) onTheWay.set(message.seq, connection);
    return send(message, connection, ...rest);
  };
  // What a worker did not want any more goes to another one.
  child.on('internalMessage', ({ ack }: Heard) => onTheWay.delete(ack));
  worker.on('exit', () => {
    for (const connection of onTheWay.values()) connection.close();
  });
}

function isConnection(value: unknown): value is Connection {
  return value !== null && typeof value === 'object' && 'close' in value;
}
