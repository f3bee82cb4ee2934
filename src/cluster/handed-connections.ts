// The connections that node:cluster is handing to a worker. It forgets the one that was on its way when the
// worker dies: nobody answers or closes it, and its client waits for ever.
import type { Worker } from 'node:cluster';

/** What node:cluster hands over: a handle of the system. To close it again does nothing. */
interface Connection {
  close(): void;
}

/** Closes what was on its way to a worker that has ended, so that its client asks again. */
export function closeWhatIsLost(worker: Worker): void {
  const { process: child } = worker;
  // One is on its way at a time for each address that is listened on: the next waits until the worker has it.
  const onTheWay = new Map<unknown, Connection>();
  const send = child.send.bind(child) as (...given: unknown[]) => boolean;
  child.send = (message: { readonly key?: unknown }, connection?: unknown, ...rest: unknown[]) => {
    if (isConnection(connection)) onTheWay.set(message.key, connection);
    return send(message, connection, ...rest);
  };
  worker.on('exit', () => {
    for (const connection of onTheWay.values()) connection.close();
  });
}

function isConnection(value: unknown): value is Connection {
  return value !== null && typeof value === 'object' && 'close' in value;
}
