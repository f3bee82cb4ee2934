// One worker, as its parent sees it: a process, what it is told, and what it tells.
import type { Worker } from 'node:cluster';
import { closeWhatIsLost } from './handed-connections.ts';
import type { Beginning, Report, ToParent, ToWorker } from './messages.ts';

/** Milliseconds that a worker has to say what it has counted; after that, what it said last holds. */
const reportLimit = 2_000;
/** Milliseconds after which a worker that serves was no failed start. */
const trial = 10_000;

/** How a worker has ended. */
export interface Ending {
  /** Why it could not serve, in its own words; undefined: it did not say. */
  readonly reason: string | undefined;
  /** The exit code, or the signal that ended it. */
  readonly code: number | string;
}

export class Member {
  /** Resolves when it could listen; never, if it ends before. */
  readonly built: Promise<void>;
  /** Resolves when it listens; never, if it ends before. */
  readonly listening: Promise<void>;
  readonly ended: Promise<Ending>;
  /** What it has counted, as far as is known. */
  report: Report | undefined;
  isBuilt = false;
  isListening = false;
  /** Whether another worker has its place: it may end. */
  isReplaced = false;
  /** How many times it was asked for a sign of life since it gave one. */
  unanswered = 0;
  readonly #worker: Worker;
  #reason: string | undefined;
  #listeningSince = Number.POSITIVE_INFINITY;
  #onReport: (() => void)[] = [];

  /**
   * @param onReplace called when somebody else has asked the worker to end
   * @param onMove called with the identity when it has met another database server than before
   */
  constructor(
    worker: Worker,
    assignment: Beginning,
    onReplace: () => void,
    onMove: (server: string) => void,
  ) {
    this.#worker = worker;
    closeWhatIsLost(worker);
    let declareBuilt = () => {};
    let declareListening = () => {};
    this.built = new Promise((resolve) => {
      declareBuilt = resolve;
    });
    this.listening = new Promise((resolve) => {
      declareListening = resolve;
    });
    worker.on('message', (message: ToParent) => {
      if (message.type === 'hearing') this.tell({ type: 'build', assignment });
      else if (message.type === 'built') {
        this.isBuilt = true;
        declareBuilt();
      } else if (message.type === 'pong') this.unanswered = 0;
      else if (message.type === 'replace') onReplace();
      else if (message.type === 'moved') onMove(message.server);
      else if (message.type === 'report') this.#take(message.report);
      else if (message.type === 'listening') {
        this.isListening = true;
        this.#listeningSince = performance.now();
        declareListening();
      } else {
        if (message.type === 'failed') this.#reason = message.reason;
        else this.#take(message.report);
        this.tell({ type: 'end' });
      }
    });
    this.ended = new Promise((resolve) => {
      const end = (code: number | string) => {
        this.isListening = false;
        for (const settle of this.#onReport.splice(0)) settle();
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

  /** Whether it has served for so long that it could. */
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

  /** Brings `report` up to date, if it answers in time. */
  async askForReport(): Promise<void> {
    if (!this.isListening) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, reportLimit);
      this.#onReport.push(() => {
        clearTimeout(timer);
        resolve();
      });
      this.tell({ type: 'report' });
    });
  }

  #take(report: Report | undefined): void {
    this.report = report;
    for (const resolve of this.#onReport.splice(0)) resolve();
  }
}
