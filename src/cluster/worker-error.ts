// Why a gateway of several processes ends, apart from what runs them: the way to say an error needs it always.

/** The workers cannot go on, or not even begin; the message says why. */
export class WorkerError extends Error {
  override readonly name = 'WorkerError';
}
