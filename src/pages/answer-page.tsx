// The page of a REST answer: a list as a gallery, an error as sentences, others as JSON, with the request to copy.
import { STATUS_CODES } from 'node:http';
import { knownParametersOf } from '../rest/documents.ts';
import type { Route } from '../rest/routes.ts';
import { formatQuery, type QueryParameters } from '../rest/url.ts';
import { type GraphQLRequest, toCurl, toShareLink } from './graphql-request.ts';
import { Layout } from './parts/layout.tsx';
import {
  isEnvelope,
  isGallery,
  List,
  numbered,
  type Ordering,
  OrderingMenu,
  placeOf,
} from './parts/list.tsx';
import { isOutfit, OutfitCard } from './parts/outfit-card.tsx';
import type { Site } from './parts/site.ts';
import { JsonView, shownText, Text } from './parts/text.tsx';

/** The JSON answer, and its request. */
export interface Answer {
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly json: unknown;
}

export interface AnswerPageProperties {
  readonly site: Site;
  readonly answer: Answer;
  readonly route: Route | undefined;
  readonly parameters: QueryParameters;
  readonly orderings: readonly Ordering[];
  readonly graphqlRequest: GraphQLRequest | undefined;
  /** Scheme and host of the request; undefined: its Host is invalid. */
  readonly base: string | undefined;
}

export function AnswerPage(properties: AnswerPageProperties) {
  const { site, answer, route, parameters, orderings, graphqlRequest, base } = properties;
  const { method, target, status, json } = answer;
  const isWrong = status >= 400;
  const reason = reasonOf(status);
  const envelope = !isWrong && route?.list && isEnvelope(json) ? json : undefined;
  const outfit = !isWrong && route?.record && isOutfit(json) ? json : undefined;
  const isByOffset = route !== undefined && knownParametersOf(route).has('offset');
  const name = route?.name ?? 'Outfit gateway';
  const title = envelope && !isByOffset ? numbered(name, placeOf(envelope)) : name;
  return (
    <Layout site={site} title={isWrong ? `${reason} – ${name}` : title} path={route?.path}>
      <h1>{isWrong ? reason : name}</h1>
      {isWrong ? <Problem {...properties} /> : route && <p class="lead">{route.description}</p>}
      <p class="request">
        <code>
          {method} {shownText(target)}
        </code>
        <span class={isWrong ? 'status wrong' : 'status'}>{reason}</span>
      </p>
      {envelope ? (
        <List {...{ envelope, orderings, parameters, isByOffset, site }} />
      ) : outfit ? (
        <ul class="grid">
          <OutfitCard outfit={outfit} site={site} index={0} />
        </ul>
      ) : (
        <OrderingMenu orderings={orderings} parameters={parameters} />
      )}
      <div class="panels">
        <div>
          <AnswerSection answer={answer} isOpen={!envelope || !isGallery(envelope)} />
          {route?.create && (
            <section class="panel" aria-labelledby="writing">
              <h2 id="writing">Writing</h2>
              <p>
                <code>POST {route.path}</code> adds a record, from JSON or from a form.{' '}
                <code>OPTIONS {route.path}</code> tells its fields. It needs a token.
              </p>
              <p>{site.writing.detail}</p>
            </section>
          )}
        </div>
        {graphqlRequest && <GraphQLSection {...{ site, graphqlRequest, base }} />}
      </div>
    </Layout>
  );
}

export function reasonOf(status: number): string {
  return `${status} ${STATUS_CODES[status] ?? ''}`.trim();
}

/** What is wrong, in the words of the answer, and the way back. */
export function Problem({ site, answer, route, parameters }: AnswerPageProperties) {
  const messages = messagesOf(answer.json);
  const isPastEnd = answer.status === 404 && messages.some(({ message }) => /page/i.test(message));
  const to = (page: string) => `?${formatQuery(parameters, 'page', page)}`;
  return (
    <div class="problem">
      {messages.map(({ field, message }) => (
        <p>
          {field !== undefined && (
            <>
              <code>
                <Text>{field}</Text>
              </code>
              {': '}
            </>
          )}
          <Text>{message}</Text>
        </p>
      ))}
      {answer.status === 401 && <p>{site.writing.detail}</p>}
      {isPastEnd ? (
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

/** Sentences of an error body: `detail`, or a list for each field. */
function messagesOf(json: unknown): { field: string | undefined; message: string }[] {
  return Object.entries(json ?? {}).flatMap(([name, messages]) => {
    const field = name === 'detail' || name === 'non_field_errors' ? undefined : name;
    return [messages].flat().map((message) => ({ field, message: String(message) }));
  });
}

/** @param isOpen whether the JSON is unfolded, as the only content of the page */
function AnswerSection({ answer, isOpen }: { answer: Answer; isOpen: boolean }) {
  const { method, target, status, headers, json } = answer;
  return (
    <section class="panel" aria-labelledby="answer">
      <h2 id="answer">The same as a program gets it</h2>
      <pre class="code">
        {`${method} ${shownText(target)}\n\n`}
        <strong>HTTP {reasonOf(status)}</strong>
        {headers.map(([name, value]) => `\n${name}: ${shownText(value)}`)}
      </pre>
      <details open={isOpen}>
        <summary>JSON</summary>
        <JsonView value={json} />
      </details>
    </section>
  );
}

type GraphQLSectionProperties = Pick<AnswerPageProperties, 'site' | 'base'> & {
  graphqlRequest: GraphQLRequest;
};

function GraphQLSection({ site, graphqlRequest, base }: GraphQLSectionProperties) {
  return (
    <section class="panel" aria-labelledby="question">
      <h2 id="question">The same question in GraphQL</h2>
      <pre class="code">{shownText(graphqlRequest.query)}</pre>
      <p>With these variables:</p>
      <JsonView value={graphqlRequest.variables} />
      {site.config.graphiql && (
        <p>
          <a class="button" href={`${site.root}${toShareLink(graphqlRequest)}`}>
            Open it in GraphiQL
          </a>
        </p>
      )}
      {base !== undefined && (
        <details>
          <summary>As curl</summary>
          <pre class="code">{toCurl(base, graphqlRequest)}</pre>
        </details>
      )}
    </section>
  );
}
