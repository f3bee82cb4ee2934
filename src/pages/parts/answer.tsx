// The answer that a page shows, and what is wrong with its request.
import { STATUS_CODES } from 'node:http';
import type { Route } from '../../rest/routes.ts';
import { formatQuery, type QueryParameters } from '../../rest/variables.ts';
import type { Site } from './layout.tsx';
import { Text } from './text.tsx';

export interface PageProperties {
  readonly site: Site;
  /** The JSON answer, and its request. */
  readonly answer: {
    readonly method: string;
    readonly target: string;
    readonly status: number;
    readonly headers: readonly (readonly [name: string, value: string])[];
    readonly json: unknown;
  };
  readonly route: Route | undefined;
  readonly parameters: QueryParameters;
  /** Address of the equivalent request in GraphiQL. */
  readonly graphiql: string | undefined;
  /** Scheme and host of the request; empty: its Host is invalid. */
  readonly base: string;
}

export function reasonOf(status: number): string {
  return `${status} ${STATUS_CODES[status] ?? ''}`.trim();
}

export interface Message {
  readonly id?: string | undefined;
  readonly field: string | undefined;
  readonly message: string;
}

/** Sentences of an error body: `detail`, or a list for each field. */
export function messagesOf(json: unknown): Message[] {
  return Object.entries(json ?? {}).flatMap(([name, messages]) => {
    const field = name === 'detail' || name === 'non_field_errors' ? undefined : name;
    return [messages].flat().map((message) => ({ field, message: String(message) }));
  });
}

interface ProblemProperties extends PageProperties {
  readonly messages: readonly Message[];
}

/** What is wrong, and the way back. */
export function Problem({ site, answer, route, parameters, messages }: ProblemProperties) {
  const to = (page: string) => `?${formatQuery(parameters, route?.pages.page ?? 'page', page)}`;
  return (
    <div class="problem">
      {messages.map(({ id, field, message }) => (
        <p id={id && `problem-${id}`}>
          {field !== undefined && (
            <strong>
              <Text>{field}</Text>:{' '}
            </strong>
          )}
          <Text>{message}</Text>
        </p>
      ))}
      {answer.status === 401 && <p>{site.writing}</p>}
      {isPastEnd(answer) ? (
        <p>
          <a href={to('1')}>To the first page</a>, <a href={to('last')}>to the last page</a>
        </p>
      ) : (
        (!route || answer.status === 404) && (
          <p>
            <a href={`${site.root}/outfits/`}>To the outfits</a>
          </p>
        )
      )}
    </div>
  );
}

export const isPastEnd = ({ json, status }: PageProperties['answer']) =>
  status === 404 && messagesOf(json).some(({ message }) => /\bpage\b/i.test(message));
