// Turns on the processor: work on many objects is done in slices, between which others have their turn.
import { FairQueue, type Origin } from './connection/lane.ts';
import { currentTask } from './task.ts';

/** Fields of results between two turns of the event loop: a millisecond or two. */
const slice = 250;

interface Waiting {
  readonly fields: number;
  readonly begin: () => void;
}

const queue = new FairQueue<Waiting>();
/** Fields that have begun since the event loop last turned. */
let begun = 0;
let isScheduled = false;

/**
 * Undefined: go on now. Senders have their turns one after the other, whatever each of them waits with.
 * @param fields to work on
 * @param origin outside of tasks
 * @throws the reason of a task that was stopped meanwhile
 */
export function takeTurn(fields: number, origin?: Origin): Promise<void> | undefined {
  if (queue.size === 0 && begun < slice) {
    begin(fields);
    return undefined;
  }
  const task = currentTask();
  if (task) task.waitingParts += 1;
  return new Promise<void>((settle) => {
    queue.add(origin ?? task ?? { sender: '' }, { fields, begin: settle });
    schedule();
  }).then(() => {
    if (task) task.waitingParts -= 1;
    task?.signal.throwIfAborted();
  });
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

function begin(fields: number): void {
  begun += fields;
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
  while (begun < slice) {
    const next = queue.next();
    if (!next) return;
    begin(next.fields);
    next.begin();
  }
}
