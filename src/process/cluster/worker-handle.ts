// The handle of one worker in the parent: messages to it, events from it, its state.
import type { Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { OperatorError } from '../../errors.ts';
import type { Report, StartMessage, ToParent, ToWorker } from './messages.ts';

/** Milliseconds for a report of metrics; after that, the last one is used. */
const reportTimeout = 2_000;
/** Milliseconds of serving after which an exit is no failed start. */
const stableAfter = 10_000;

export interface Exit {
  readonly reason: string | undefined;
  readonly code: number | string;
}

type Events = {
  [Type in ToParent['type']]: [Extract<ToParent, { readonly type: Type }>];
};

export class WorkerHandle extends EventEmitter<Events> {
  readonly exited: Promise<Exit>;
  report: Report | undefined;
  isBuilt = false;
  isListening = false;
  /** Whether another worker has its slot: its exit is expected. */
  isReplaced = false;
  /** Heartbeats sent since the last answer. */
  missedHeartbeats = 0;
  readonly #worker: Worker;
  #reason: string | undefined;
  #listeningSince = Number.POSITIVE_INFINITY;

  constructor(worker: Worker, start: StartMessage) {
    super();
    this.#worker = worker;
    closeUndelivered(worker);
    worker.on('message', (message: ToParent) => this.emit(message.type, message as never));
    this.on('online', () => this.send({ type: 'start', ...start }));
    this.on('built', () => {
      this.isBuilt = true;
    });
    this.on('listening', () => {
      this.isListening = true;
      this.#listeningSince = performance.now();
    });
    this.on('pong', () => {
      this.missedHeartbeats = 0;
    });
    this.on('report', ({ report }) => {
      this.report = report;
    });
    this.on('failed', ({ reason }) => {
      this.#reason = reason;
      this.send({ type: 'exit' });
    });
    this.on('closed', ({ report }) => {
      this.report = report;
      this.send({ type: 'exit' });
    });
    this.exited = new Promise((resolve) => {
      const exit = (code: number | string) => {
        this.isListening = false;
        resolve({ reason: this.#reason, code });
      };
      worker.on('exit', (code, signal) => exit(signal || code));
      // Such as a process that could not be spawned, or a message that could not be sent.
      worker.on('error', (error) => {
        this.#reason ??= error.message;
        if (worker.process.pid === undefined) exit('no process');
      });
    });
  }

  get processId(): number | undefined {
    return this.#worker.process.pid;
  }

  get isStable(): boolean {
    return performance.now() - this.#listeningSince > stableAfter;
  }

  send(message: ToWorker): void {
    // A worker about to exit is disconnected already, which is no error.
    if (this.#worker.isConnected()) this.#worker.send(message, () => {});
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }

  async until(event: 'built' | 'listening'): Promise<void> {
    const failedStart = this.exited.then(({ reason, code }) => {
      throw new OperatorError(reason ?? `A worker has ended before it could serve (${code}).`);
    });
    await Promise.race([once(this, event), failedStart]);
  }

  listen(): Promise<void> {
    this.send({ type: 'listen' });
    return this.until('listening');
  }

  async drain(): Promise<void> {
    this.isReplaced = true;
    this.send({ type: 'drain' });
    await this.exited;
  }

  /** Refreshes `report`, if the worker answers in time. */
  async refreshReport(): Promise<void> {
    if (!this.isListening) return;
    const signal = AbortSignal.timeout(reportTimeout);
    this.send({ type: 'report' });
    await Promise.race([once(this, 'report', { signal }).catch(() => {}), this.exited]);
  }
}

/**
 * Closes connections that were on their way to a worker when it exited, so that their clients retry. node:cluster
 * forgets them: they would stay open without an answer.
 */
function closeUndelivered(worker: Worker): void {
  const { process: child } = worker;
  const undelivered = new Map<unknown, { close(): void }>();
  const send = child.send.bind(child) as (...given: unknown[]) => boolean;
  child.send = (message: { readonly seq?: unknown }, handle?: unknown, ...rest: unknown[]) => {
    const isConnection = handle !== null && typeof handle === 'object' && 'close' in handle;
    if (isConnection) undelivered.set(message.seq, handle as { close(): void });
    return send(message, handle, ...rest);
  };
  // A connection that a worker refuses is handed to another one.
  child.on('internalMessage', ({ ack }: { readonly ack?: unknown }) => undelivered.delete(ack));
  worker.on('exit', () => {
    for (const connection of undelivered.values()) connection.close();
  });
}
