// Turns on the processor: work on many objects is done in slices, between which others have their turn.
import { FairQueue, type Origin } from './connection/lane.ts';
import { currentTask } from './task.ts';

/**
 * Fields of results between two turns of the event loop: a millisecond or two. Those of a page take an eighth of the time that
 * those of lists within lists take; each turn costs a small operation as much as its fields do.
 */
const fieldsPerTurn = { large: 250, small: 2_000 };

interface Waiting {
  readonly share: number;
  readonly begin: () => void;
}

const queue = new FairQueue<Waiting>();
/** Share of a turn that has begun since the event loop last turned. */
let begun = 0;
let isScheduled = false;

/**
 * Undefined: go on now. Senders have their turns one after the other, whatever each of them waits with.
 * @param fields to work on
 * @param origin outside of tasks
 * @throws the reason of a task that was stopped meanwhile
 */
export function takeTurn(fields: number, origin?: Origin): Promise<void> | undefined {
  const task = currentTask();
  const isLarge = task?.isLarge ?? true;
  const share = fields / (isLarge ? fieldsPerTurn.large : fieldsPerTurn.small);
  if (queue.size === 0 && begun < 1) {
    begin(share);
    return undefined;
  }
  if (task) task.waitingParts += 1;
  return new Promise<void>((settle) => {
    queue.add(origin ?? task ?? { sender: '' }, { share, begin: settle });
    schedule();
  }).then(() => {
    if (task) task.waitingParts -= 1;
    task?.signal.throwIfAborted();
  });
}

/** Characters of JSON that are parsed in turns: a megabyte takes a tenth of a second; and as many as one field takes. */
const large = { characters: 16_384, perField: 64 };

/** The same before so much JSON is parsed. */
export function takeTurnToParse(characters: number, origin: Origin): Promise<void> | undefined {
  if (characters <= large.characters) return undefined;
  return takeTurn(characters / large.perField, origin);
}

/** Calls back as soon as no part of the current task waits for its turn: then all that it needs next is known. */
export function afterTurns(callback: () => void): void {
  if (currentTask()?.waitingParts) setImmediate(afterTurns, callback);
  else callback();
}

/** Gives what is worked on next, in its turn: so many objects of the current task. */
export function inTurn<Value>(value: Value, objects: number): Value | Promise<Value> {
  return takeTurn(objects * (currentTask()?.fieldsPerObject ?? 1))?.then(() => value) ?? value;
}

function begin(share: number): void {
  begun += share;
  schedule();
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(turn);
}

function turn(): void {
  isScheduled = false;
  begun = 0;
  while (begun < 1) {
    const next = queue.next();
    if (!next) return;
    begin(next.share);
    next.begin();
  }
}
