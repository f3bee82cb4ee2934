// The headers of the answers of a legacy path.
import { requestIdHeader } from '../http/request-id.ts';
import { varyOf } from '../rest/adapter.ts';
import { deprecationHeaders } from '../rest/deprecation.ts';
import { allowOf, type Route } from '../rest/routes.ts';
import type { DocumentOptions } from './document.ts';
import type { JsonSchema } from './json-schema.ts';

export type Headers = Readonly<Record<string, JsonSchema>>;

const text = { required: true, schema: { type: 'string' } };

/** Those of every answer, errors too; beside `Allow`, which is of each path. */
function describeCommon(config: DocumentOptions['config']): Headers {
  const fixed = { Vary: varyOf(config.compression), ...deprecationHeaders(config) };
  return {
    ...Object.fromEntries(
      Object.entries(fixed).map(([name, example]) => [name, { ...text, example }]),
    ),
    [requestIdHeader]: {
      ...text,
      description: 'Names the request in the log: as its sender did in this header, or else anew.',
    },
  };
}

/** Those of an answer that can be asked for on a condition. */
const validators: Headers = {
  ETag: { ...text, description: 'Names these bytes, for `If-None-Match`.' },
  'Cache-Control': { ...text, example: 'no-cache' },
};

/** What the headers below refer to. */
export function describeNamedHeaders(config: DocumentOptions['config']): Headers {
  return { ...describeCommon(config), ...validators };
}

export function headersOf(route: Route, config: DocumentOptions['config']): Headers {
  return { Allow: { ...text, example: allowOf(route) }, ...referTo(describeCommon(config)) };
}

export const validatorHeaders = referTo(validators);

function referTo(headers: Headers): Headers {
  return Object.fromEntries(
    Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
}
