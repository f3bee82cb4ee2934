// Supervision of the workers: restart with backoff, rolling restart, heartbeats, graceful shutdown.
import cluster from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { OperatorError } from '../../errors.ts';
import { packageFolder } from '../../package.ts';
import type { CombinedMetrics } from './combined-metrics.ts';
import type { StartMessage } from './messages.ts';
import { type Exit, WorkerHandle } from './worker-handle.ts';

/** Milliseconds that all have to close before they are killed. Closing takes 4.6 s at most. */
const closeTimeout = 4_700;
const killTimeout = 200;
/** Failed starts in a row, in every slot, after which the gateway gives up. */
const maxFailures = 6;
/** Exponential backoff of failed starts, in milliseconds. */
const backoff = { first: 500, longest: 30_000 };
/** Milliseconds between heartbeats; a worker that misses those of half a minute is killed. */
const heartbeatInterval = 5_000;
const maxMissedHeartbeats = 6;

/** One worker after the other, with the same share of the limits. */
interface Slot {
  readonly start: Omit<StartMessage, 'isFirst'>;
  worker: WorkerHandle | undefined;
  /** Failed starts in a row. */
  failures: number;
  /** Whether a replacement is starting: it restarts the slot itself when it fails. */
  isReplacing: boolean;
}

interface Options {
  readonly starts: readonly Slot['start'][];
  readonly log: Logger;
  readonly metrics: CombinedMetrics;
  findProblem(): string | undefined;
  onCrashLoop(error: OperatorError): void;
}

export class Workers {
  readonly #slots: Slot[] = [];
  readonly #options: Options;
  /** All that run, those being drained included. */
  readonly #workers = new Set<WorkerHandle>();
  #isListening = false;
  #isClosing = false;
  /** The rolling restart in progress, and whether another one was requested meanwhile. */
  #restarting: Promise<void> | undefined;
  #isRestartRequested = false;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: Options) {
    this.#options = options;
    for (const start of options.starts) {
      this.#slots.push({ start, worker: undefined, failures: 0, isReplacing: false });
    }
    cluster.schedulingPolicy = cluster.SCHED_RR;
    cluster.setupPrimary({
      exec: fileURLToPath(new URL('dist/cluster/gateway-worker.js', packageFolder)),
      args: [],
      serialization: 'advanced',
    });
  }

  /** Starts all workers, without listening. @throws OperatorError when one fails */
  async build(): Promise<void> {
    await Promise.all(this.#slots.map((slot) => this.#start(slot)));
  }

  /** Returns the process ids. @throws OperatorError when a worker fails */
  async listen(): Promise<(number | undefined)[]> {
    const workers = [...this.#workers];
    await Promise.all(workers.map((worker) => worker.listen()));
    this.#isListening = true;
    for (const slot of this.#slots) if (!slot.worker) this.#restartWithBackoff(slot);
    this.#heartbeat = setInterval(() => this.#checkHeartbeats(), heartbeatInterval);
    return workers.map(({ processId }) => processId);
  }

  /** Sends the readiness of the gateway to all workers, each of which answers health checks; and its log level. */
  sendReadiness(): void {
    const problem = this.#findShortage() ?? this.#options.findProblem();
    const { level: logLevel } = this.#options.log;
    for (const worker of this.#workers) worker.send({ type: 'problem', problem, logLevel });
  }

  /** After a failover that one process has seen: all check which database server they are connected to. */
  probeServer(server: string): void {
    for (const worker of this.#workers) worker.send({ type: 'check-server', server });
  }

  /** Rolling restart: replaces the workers one by one; each serves until its replacement does. */
  restart(): void {
    if (!this.#isListening) return;
    this.#isRestartRequested = true;
    this.#restarting ??= this.#restartAll().finally(() => {
      this.#restarting = undefined;
    });
  }

  /** Graceful shutdown. @see Shutdown.close for `announce` */
  async close(announce: boolean): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#heartbeat);
    const workers = [...this.#workers];
    for (const worker of workers) {
      // One that is still starting serves no requests, and may not receive messages yet.
      if (worker.isBuilt) worker.send({ type: 'close', announce });
      else worker.kill();
    }
    const allExited = Promise.all(workers.map(({ exited }) => exited));
    await Promise.race([allExited, sleep(closeTimeout)]);
    for (const worker of this.#workers) worker.kill();
    await Promise.race([allExited, sleep(killTimeout)]);
  }

  /** Not ready with fewer than half of the workers: they would be overloaded. */
  #findShortage(): string | undefined {
    const serving = [...this.#workers].filter(
      ({ isListening, isReplaced }) => isListening && !isReplaced,
    );
    const wanted = this.#slots.length;
    if (!this.#isListening || serving.length * 2 >= wanted) return undefined;
    return `Only ${serving.length} of ${wanted} workers serve.`;
  }

  /** Starts a worker in a slot; it does not listen yet. @throws OperatorError */
  async #start(slot: Slot): Promise<WorkerHandle> {
    const worker = new WorkerHandle(cluster.fork(), { ...slot.start, isFirst: !this.#isListening });
    worker.on('replace', () => {
      if (!this.#isListening || this.#isClosing || slot.worker !== worker || slot.isReplacing)
        return;
      this.#replace(slot);
    });
    worker.on('server-changed', ({ server }) => this.probeServer(server));
    slot.worker = worker;
    this.#workers.add(worker);
    this.#options.metrics.add(worker);
    worker.exited.then((exit) => this.#handleExit(slot, worker, exit));
    await worker.until('built');
    this.sendReadiness();
    return worker;
  }

  #handleExit(slot: Slot, worker: WorkerHandle, { reason, code }: Exit): void {
    this.#workers.delete(worker);
    this.#options.metrics.retire(
      worker,
      this.#isListening && !worker.isReplaced && !this.#isClosing,
    );
    if (slot.worker === worker) slot.worker = undefined;
    this.sendReadiness();
    // At the start of the gateway, the first failed worker ends all: `build` throws its reason.
    if (this.#isClosing || !this.#isListening || worker.isReplaced) return;
    const { log, onCrashLoop } = this.#options;
    const { processId } = worker;
    log.error({ worker: processId, code, reason }, `worker ${processId} has ended (${code})`);
    if (slot.isReplacing) return;
    slot.failures = worker.isStable ? 0 : slot.failures + 1;
    if (this.#slots.some((one) => one.failures < maxFailures || one.worker)) {
      this.#restartWithBackoff(slot);
      return;
    }
    const sentence = `All workers end as soon as they have started, ${maxFailures} times in a row`;
    onCrashLoop(new OperatorError(`${sentence}: ${reason ?? 'see the log before this'}`));
  }

  async #restartWithBackoff(slot: Slot): Promise<void> {
    // No backoff after the first failure.
    if (slot.failures > 0) {
      await sleep(Math.min(backoff.first * 2 ** (slot.failures - 1), backoff.longest));
    }
    if (this.#isClosing || slot.worker || slot.isReplacing) return;
    await this.#startListening(slot).catch(() => {});
  }

  async #startListening(slot: Slot): Promise<void> {
    const worker = await this.#start(slot);
    await worker.listen();
    this.sendReadiness();
    this.#options.log.info({ worker: worker.processId }, `worker ${worker.processId} serves`);
  }

  async #restartAll(): Promise<void> {
    while (this.#isRestartRequested && !this.#isClosing) {
      this.#isRestartRequested = false;
      this.#options.log.info('SIGHUP: restarting the workers, one after the other');
      for (const slot of this.#slots) {
        if (!this.#isClosing && !(await this.#replace(slot))) break;
      }
    }
  }

  /** Returns whether the replacement serves; if not, the old worker stays. */
  async #replace(slot: Slot): Promise<boolean> {
    const old = slot.worker;
    slot.isReplacing = true;
    try {
      await this.#startListening(slot);
      await old?.drain();
      return true;
    } catch (error) {
      if (this.#isClosing) return false;
      this.#options.log.error({ err: error }, 'a new worker cannot serve: the old ones stay');
      slot.worker = old && this.#workers.has(old) ? old : undefined;
      return false;
    } finally {
      slot.isReplacing = false;
      if (!slot.worker && !this.#isClosing) this.#restartWithBackoff(slot);
    }
  }

  /** Kills workers that hang: they would keep their connections without answering. */
  #checkHeartbeats(): void {
    for (const worker of this.#workers) {
      if (!worker.isListening) continue;
      if (worker.missedHeartbeats >= maxMissedHeartbeats) {
        const { processId } = worker;
        this.#options.log.error({ worker: processId }, `worker ${processId} hangs: it is killed`);
        worker.kill();
      }
      worker.missedHeartbeats += 1;
      worker.send({ type: 'ping' });
    }
  }
}
