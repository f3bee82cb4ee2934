// The schema builder (Pothos) with its plugins, and the scalar DateTime.
import SchemaBuilder from '@pothos/core';
import PrismaPlugin from '@pothos/plugin-prisma';
import RelayPlugin from '@pothos/plugin-relay';
import { type ASTNode, Kind } from 'graphql';
import type PrismaTypes from '../generated/pothos-types.ts';
import { getDatamodel } from '../generated/pothos-types.ts';
import type { RangeList } from '../outfits/lists/list.ts';
import { formatTimestamp, parseWithOffset } from '../outfits/timestamps.ts';
import type { Context } from './context.ts';
import { badUserInput } from './errors.ts';

export const builder = new SchemaBuilder<{
  /** What connections have beside their range. */
  Connection: {
    readonly list: Pick<RangeList<object>, 'count'>;
    readonly searchTooShort?: boolean;
  };
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
    startCursorFieldOptions: {
      description: 'Cursor of the first edge; null when there is no edge.',
    },
    endCursorFieldOptions: { description: 'Cursor of the last edge; null when there is no edge.' },
    edgesFieldOptions: { description: 'The items of this range, each with its cursor.' },
    nodesOnConnection: {
      description: 'The items of this range, for clients that need no cursors of single items.',
    },
    pageInfoFieldOptions: { description: 'Where this range begins and ends.' },
    cursorFieldOptions: { description: 'Opaque cursor of this position in the list.' },
    nodeFieldOptions: { description: 'The item.' },
    firstArgOptions: { description: 'Number of items from the start of the range.' },
    afterArgOptions: { description: 'Cursor after which the range begins.' },
    lastArgOptions: { description: 'Number of items from the end of the range.' },
    beforeArgOptions: { description: 'Cursor before which the range ends.' },
  },
});

builder.queryType({ description: 'Entry points for reading.' });

export const DateTime = builder.scalarType('DateTime', {
  description:
    'A point in time in RFC 3339 format. Answers are in UTC, with six digits of fraction and a trailing `Z`, such as `2024-05-01T09:30:00.000000Z`. Arguments may have another offset, and up to six digits of fraction; zeros behind them are ignored.',
  specifiedByURL: 'https://scalars.graphql.org/chillicream/date-time.html',
  serialize: (micros) => formatTimestamp(micros),
  parseValue: (value) => readDateTime(value),
  // With the node, so that the error has its place in the document.
  parseLiteral: (node) => readDateTime(node.kind === Kind.STRING ? node.value : undefined, node),
});

function readDateTime(value: unknown, node?: ASTNode): bigint {
  const micros = typeof value === 'string' ? parseWithOffset(value) : undefined;
  if (micros !== undefined) return micros;
  throw badUserInput(
    'A DateTime is an RFC 3339 timestamp such as "2024-05-01T09:30:00.000000Z", with at most six digits of fraction.',
    node,
  );
}
