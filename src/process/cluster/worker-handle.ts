// One worker, as its parent sees it: a process, what it is told, and what it tells.
import type { Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { OperatorError } from '../../errors.ts';
import type { Assignment, Report, ToParent, ToWorker } from './messages.ts';

/** Milliseconds that a worker has to say what it has counted; after that, what it said last holds. */
const reportLimit = 2_000;
/** Milliseconds after which a worker that serves was no failed start. */
const trial = 10_000;

export interface Ending {
  readonly reason: string | undefined;
  readonly code: number | string;
}

type Events = {
  [Type in ToParent['type']]: [Extract<ToParent, { readonly type: Type }>];
};

export class Member extends EventEmitter<Events> {
  readonly ended: Promise<Ending>;
  report: Report | undefined;
  isBuilt = false;
  isListening = false;
  /** Whether another worker has its place: it may end. */
  isReplaced = false;
  /** Pings since the last pong. */
  unanswered = 0;
  readonly #worker: Worker;
  #reason: string | undefined;
  #listeningSince = Number.POSITIVE_INFINITY;

  constructor(worker: Worker, assignment: Assignment) {
    super();
    this.#worker = worker;
    closeWhatIsLost(worker);
    worker.on('message', (message: ToParent) => this.emit(message.type, message as never));
    this.on('hearing', () => this.tell({ type: 'build', assignment }));
    this.on('built', () => {
      this.isBuilt = true;
    });
    this.on('listening', () => {
      this.isListening = true;
      this.#listeningSince = performance.now();
    });
    this.on('pong', () => {
      this.unanswered = 0;
    });
    this.on('report', ({ report }) => {
      this.report = report;
    });
    this.on('failed', ({ reason }) => {
      this.#reason = reason;
      this.tell({ type: 'end' });
    });
    this.on('closed', ({ report }) => {
      this.report = report;
      this.tell({ type: 'end' });
    });
    this.ended = new Promise((resolve) => {
      const end = (code: number | string) => {
        this.isListening = false;
        resolve({ reason: this.#reason, code });
      };
      worker.on('exit', (code, signal) => end(signal || code));
      // Such as a process that could not be started, or told.
      worker.on('error', (error) => {
        this.#reason ??= error.message;
        if (worker.process.pid === undefined) end('no process');
      });
    });
  }

  get processId(): number | undefined {
    return this.#worker.process.pid;
  }

  get isProven(): boolean {
    return performance.now() - this.#listeningSince > trial;
  }

  tell(message: ToWorker): void {
    // One that is about to end hears no more, which is no error.
    if (this.#worker.isConnected()) this.#worker.send(message, () => {});
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }

  async until(event: 'built' | 'listening'): Promise<void> {
    const failed = this.ended.then(({ reason, code }) => {
      throw new OperatorError(reason ?? `A worker has ended before it could serve (${code}).`);
    });
    await Promise.race([once(this, event), failed]);
  }

  listen(): Promise<void> {
    this.tell({ type: 'listen' });
    return this.until('listening');
  }

  async leave(): Promise<void> {
    this.isReplaced = true;
    this.tell({ type: 'leave' });
    await this.ended;
  }

  /** Brings `report` up to date, if it answers in time. */
  async askForReport(): Promise<void> {
    if (!this.isListening) return;
    const signal = AbortSignal.timeout(reportLimit);
    this.tell({ type: 'report' });
    await Promise.race([once(this, 'report', { signal }).catch(() => {}), this.ended]);
  }
}

/**
 * Closes connections that node:cluster was handing to a worker that has ended, so that their clients ask again:
 * it forgets them, and nobody would answer or close them.
 */
function closeWhatIsLost(worker: Worker): void {
  const { process: child } = worker;
  const onTheWay = new Map<unknown, { close(): void }>();
  const send = child.send.bind(child) as (...given: unknown[]) => boolean;
  child.send = (message: { readonly seq?: unknown }, handle?: unknown, ...rest: unknown[]) => {
    const isConnection = handle !== null && typeof handle === 'object' && 'close' in handle;
    if (isConnection) onTheWay.set(message.seq, handle as { close(): void });
    return send(message, handle, ...rest);
  };
  // What a worker did not want any more goes to another one.
  child.on('internalMessage', ({ ack }: { readonly ack?: unknown }) => onTheWay.delete(ack));
  worker.on('exit', () => {
    for (const connection of onTheWay.values()) connection.close();
  });
}
