// Loaders: one statement for all that a step of an execution needs, whose results are worked on in turns.
import DataLoader from 'dataloader';
import { afterTurns, inTurn } from '../../database/turns.ts';

export interface Loader<Key, Value> {
  readonly load: (key: Key) => Promise<Value>;
}

export function createLoaderInTurns<Key, Value>(
  find: (keys: readonly Key[]) => Promise<Value[]>,
): Loader<Key, Value> {
  // No cache: a read after a write in the same document must see the write.
  const loader = new DataLoader<Key, Value>(find, { cache: false, batchScheduleFn });
  const giveWay = (value: Value) => inTurn(value, Array.isArray(value) ? value.length + 1 : 1);
  return { load: (key) => loader.load(key).then(giveWay) };
}

/** As DataLoader does by itself, in the tick after all promises: but work in turns goes on for several. */
function batchScheduleFn(send: () => void): void {
  queueMicrotask(() => process.nextTick(afterTurns, send));
}
