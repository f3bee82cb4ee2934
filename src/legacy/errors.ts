// What a client is told when the old service was to answer and did not.
import { HttpError } from '../errors.ts';

export const legacyTimedOut = () =>
  new HttpError(504, 'LEGACY_TIMEOUT', 'The old service did not answer in time.');

/** @param cause an HttpError is kept as it is */
export const legacyUnreachable = (cause: unknown) =>
  cause instanceof HttpError
    ? cause
    : new HttpError(502, 'LEGACY_UNREACHABLE', 'The old service cannot be reached.', {}, { cause });

/** In the log only: the client has the head of the answer already, and sees it broken off. */
export const legacyBrokeOff = (cause: unknown) =>
  new HttpError(502, 'LEGACY_BROKE_OFF', 'The old service broke off its answer.', {}, { cause });

/** The request has been here before. */
export const legacyLoop = () =>
  new HttpError(
    508,
    'LEGACY_LOOP',
    'The old service is this gateway itself: set LEGACY_URL to the address of the old service.',
  );
