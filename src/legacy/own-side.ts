// This service as one of the two sides. Before the switch it may pass requests on, and comparing the
// old service with itself would find nothing, whatever this one has.
import { SourceError } from '../import/batch.ts';
import { servedByHeader } from './forwarded-headers.ts';
import { createHttpSide, type HttpSideOptions, type Side } from './side.ts';

/** Nothing that was compared says anything. */
export class PassedOnError extends SourceError {}

/** A side whose `ask` throws PassedOnError when the old service has answered in its place. */
export function createOwnSide(options: HttpSideOptions): Side {
  const side = createHttpSide(options);
  return {
    ...side,
    async ask(method, target, signal) {
      const answer = await side.ask(method, target, signal);
      if (answer.headers[servedByHeader] !== 'legacy') return answer;
      throw new PassedOnError(
        `${side.base} passes requests on to the old service, which would be compared with itself: give --against a gateway that has LEGACY_MODE=off (or mirror).`,
      );
    },
  };
}
