// The schema builder (Pothos) with its plugins, and the scalar DateTime.
import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import type PrismaTypes from '../generated/pothos-types.ts';
import { getDatamodel } from '../generated/pothos-types.ts';
import { formatTimestamp, parseTimestamp } from '../outfits/timestamps.ts';
import type { Context } from './context.ts';
import { badUserInput } from './errors.ts';

export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  PrismaTypes: PrismaTypes;
  Scalars: { DateTime: { Input: bigint; Output: bigint } };
}>({
  defaultFieldNullability: false,
  plugins: [PrismaPlugin, RelayPlugin],
  prisma: {
    // From the context: building the schema needs no database.
    client: (context) => context.prisma,
    dmmf: getDatamodel(),
    exposeDescriptions: true,
    onUnusedQuery: 'error',
  },
  relay: {
    nodeQueryOptions: false,
    nodesQueryOptions: false,
    pageInfoTypeOptions: { description: 'Where a range of a connection begins and ends.' },
    hasNextPageFieldOptions: { description: 'Whether there is more after this range.' },
    hasPreviousPageFieldOptions: { description: 'Whether there is more before this range.' },
    startCursorFieldOptions: { description: 'Cursor of the first edge; null when there is none.' },
    endCursorFieldOptions: { description: 'Cursor of the last edge; null when there is none.' },
    edgesFieldOptions: { description: 'The items of this range, each with its cursor.' },
    pageInfoFieldOptions: { description: 'Where this range begins and ends.' },
    cursorFieldOptions: { description: 'Opaque mark of this place in the list.' },
    nodeFieldOptions: { description: 'The item.' },
    firstArgOptions: { description: 'How many to give from the start of the range.' },
    afterArgOptions: { description: 'Cursor that the range begins after.' },
    lastArgOptions: { description: 'How many to give from the end of the range.' },
    beforeArgOptions: { description: 'Cursor that the range ends before.' },
  },
});

builder.queryType({ description: 'Everything that can be read.' });

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
