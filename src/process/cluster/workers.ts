// The workers of a gateway: as many as there shall be, whatever ends some of them.
import cluster from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { OperatorError } from '../../errors.ts';
import { packageFolder } from '../../package.ts';
import type { CombinedMetrics } from './combined-metrics.ts';
import type { Assignment } from './messages.ts';
import { type Ending, Member } from './worker-handle.ts';

/** Milliseconds that all have to close; what is left then is killed. Closing takes 4.6 s at most. */
const closeLimit = 4_700;
const killLimit = 200;
/** Failed starts in a row after which a place is thought to be hopeless. */
const maxFailures = 6;
/** Milliseconds before a failed start is repeated: twice as long each time. */
const pause = { first: 500, longest: 30_000 };
/** Milliseconds between two signs of life, and how many may stay out: half a minute's. */
const heartbeat = 5_000;
const maxUnanswered = 6;

/** The place of a worker, and of the next one when that has ended. */
interface Place {
  readonly assignment: Omit<Assignment, 'isFirst'>;
  member: Member | undefined;
  /** Starts in a row that were soon followed by the end. */
  failures: number;
  /** Whether its worker is being replaced: whoever does that sees to it that there is one. */
  isChanging: boolean;
}

interface Options {
  readonly assignments: readonly Place['assignment'][];
  readonly log: Logger;
  readonly metrics: CombinedMetrics;
  findProblem(): string | undefined;
  onHopeless(error: OperatorError): void;
}

export class Workers {
  readonly #places: Place[] = [];
  readonly #options: Options;
  /** Those that have not ended, also those without a place. */
  readonly #members = new Set<Member>();
  #isOpen = false;
  #isClosing = false;
  /** The restart under way, and whether another one is wanted after it. */
  #restarting: Promise<void> | undefined;
  #restartAgain = false;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: Options) {
    this.#options = options;
    for (const assignment of options.assignments) {
      this.#places.push({ assignment, member: undefined, failures: 0, isChanging: false });
    }
    cluster.schedulingPolicy = cluster.SCHED_RR;
    cluster.setupPrimary({
      exec: fileURLToPath(new URL('dist/cluster/gateway-worker.js', packageFolder)),
      args: [],
      serialization: 'advanced',
    });
  }

  /** Starts all. @throws OperatorError when one of them fails */
  async build(): Promise<void> {
    await Promise.all(this.#places.map((place) => this.#start(place)));
  }

  /** Lets all listen. Gives their process ids. @throws OperatorError when one of them fails */
  async listen(): Promise<(number | undefined)[]> {
    const members = [...this.#members];
    await Promise.all(members.map((member) => member.listen()));
    this.#isOpen = true;
    for (const place of this.#places) if (!place.member) this.#startAgain(place);
    this.#heartbeat = setInterval(() => this.#feelPulses(), heartbeat);
    return members.map(({ processId }) => processId);
  }

  /** Tells all workers why the gateway is not ready, if it is not: each of them answers for it. */
  tellProblem(): void {
    const problem = this.#findShortage() ?? this.#options.findProblem();
    for (const member of this.#members) member.tell({ type: 'problem', problem });
  }

  /** A process has met another database server than before: all look which one they are connected to. */
  probeServer(server: string): void {
    for (const member of this.#members) member.tell({ type: 'look', server });
  }

  /** Replaces all, one after the other: each serves until the next one does. */
  restart(): void {
    if (!this.#isOpen) return;
    this.#restartAgain = true;
    this.#restarting ??= this.#restartWhileWanted().finally(() => {
      this.#restarting = undefined;
    });
  }

  /** @param announce whether to wait until others have seen that the gateway is not ready */
  async close(announce: boolean): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#heartbeat);
    const members = [...this.#members];
    for (const member of members) {
      // One that is being built serves nobody, and may not hear yet.
      if (member.isBuilt) member.tell({ type: 'close', announce });
      else member.kill();
    }
    const allEnded = Promise.all(members.map(({ ended }) => ended));
    await Promise.race([allEnded, sleep(closeLimit)]);
    for (const member of this.#members) member.kill();
    await Promise.race([allEnded, sleep(killLimit)]);
  }

  /** Fewer than half of the workers would be overloaded, while other gateways are not. */
  #findShortage(): string | undefined {
    const serving = [...this.#members].filter(
      ({ isListening, isReplaced }) => isListening && !isReplaced,
    );
    const wanted = this.#places.length;
    if (!this.#isOpen || serving.length * 2 >= wanted) return undefined;
    return `Only ${serving.length} of ${wanted} workers serve.`;
  }

  /** Gives a place a new worker, which is built but does not listen. @throws OperatorError */
  async #start(place: Place): Promise<Member> {
    const member = new Member(cluster.fork(), { ...place.assignment, isFirst: !this.#isOpen });
    member.on('replace', () => {
      if (!this.#isOpen || this.#isClosing || place.member !== member || place.isChanging) return;
      this.#replace(place);
    });
    member.on('moved', ({ server }) => this.probeServer(server));
    place.member = member;
    this.#members.add(member);
    this.#options.metrics.add(member);
    member.ended.then((ending) => this.#hearOfEnd(place, member, ending));
    await member.until('built');
    this.tellProblem();
    return member;
  }

  #hearOfEnd(place: Place, member: Member, { reason, code }: Ending): void {
    this.#members.delete(member);
    this.#options.metrics.retire(member, this.#isOpen && !member.isReplaced && !this.#isClosing);
    if (place.member === member) place.member = undefined;
    this.tellProblem();
    // A gateway that cannot begin ends, with the reason of the first worker that could not.
    if (this.#isClosing || !this.#isOpen || member.isReplaced) return;
    const { log, onHopeless } = this.#options;
    const { processId: worker } = member;
    log.error({ worker, code, reason }, `worker ${worker} has ended (${code})`);
    if (place.isChanging) return;
    place.failures = member.isProven ? 0 : place.failures + 1;
    if (this.#places.some((one) => one.failures < maxFailures || one.member)) {
      this.#startAgain(place);
      return;
    }
    const sentence = `All workers end as soon as they have started, ${maxFailures} times in a row`;
    onHopeless(new OperatorError(`${sentence}: ${reason ?? 'see the log before this'}`));
  }

  async #startAgain(place: Place): Promise<void> {
    // The first one may have been killed by anything, and is missed.
    if (place.failures > 0) {
      await sleep(Math.min(pause.first * 2 ** (place.failures - 1), pause.longest));
    }
    if (this.#isClosing || place.member || place.isChanging) return;
    await this.#begin(place).catch(() => {});
  }

  async #begin(place: Place): Promise<void> {
    const member = await this.#start(place);
    await member.listen();
    this.tellProblem();
    this.#options.log.info({ worker: member.processId }, `worker ${member.processId} serves`);
  }

  async #restartWhileWanted(): Promise<void> {
    while (this.#restartAgain && !this.#isClosing) {
      this.#restartAgain = false;
      this.#options.log.info('SIGHUP: restarting the workers, one after the other');
      for (const place of this.#places) {
        if (!this.#isClosing && !(await this.#replace(place))) break;
      }
    }
  }

  /** Whether that went well; if not, the worker that there was goes on. */
  async #replace(place: Place): Promise<boolean> {
    const old = place.member;
    place.isChanging = true;
    try {
      await this.#begin(place);
      await old?.leave();
      return true;
    } catch (error) {
      if (this.#isClosing) return false;
      this.#options.log.error({ err: error }, 'a new worker cannot serve: the old ones stay');
      place.member = old && this.#members.has(old) ? old : undefined;
      return false;
    } finally {
      place.isChanging = false;
      if (!place.member && !this.#isClosing) this.#startAgain(place);
    }
  }

  /** A worker that does nothing any more is no use, and keeps the connections that it has. */
  #feelPulses(): void {
    for (const member of this.#members) {
      if (!member.isListening) continue;
      if (member.unanswered >= maxUnanswered) {
        const { processId } = member;
        this.#options.log.error({ worker: processId }, `worker ${processId} hangs: it is killed`);
        member.kill();
      }
      member.unanswered += 1;
      member.tell({ type: 'ping' });
    }
  }
}
