// The DateTime scalar.
import { formatTimestamp, parseTimestamp } from '../../outfits/timestamps.ts';
import { builder } from '../builder.ts';
import { badUserInput } from '../errors.ts';

export const DateTime = builder.scalarType('DateTime', {
  description:
    'A moment as ISO 8601 UTC with six digits of fraction and a trailing `Z`, such as `2024-05-01T09:30:00.000000Z`.',
  serialize: (micros) => formatTimestamp(micros),
  parseValue: (value) => {
    const micros = typeof value === 'string' ? parseTimestamp(value) : undefined;
    if (micros !== undefined) return micros;
    throw badUserInput(
      'A DateTime is an ISO 8601 UTC timestamp such as "2024-05-01T09:30:00.000000Z".',
    );
  },
});
