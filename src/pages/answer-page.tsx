// The page of one REST answer: a list as pictures, an error in words, and any other as its JSON.

import type { Route } from '../rest/routes.ts';
import type { QueryParameters } from '../rest/url.ts';
import {
  type Answer,
  AnswerSection,
  QuestionSection,
  RequestLine,
  reasonOf,
} from './answer-sections.tsx';
import { Layout, type Site } from './layout.tsx';
import type { Media } from './media.ts';
import { type Choice, OrderingMenu } from './ordering-menu.tsx';
import { isOutfit, OutfitCard } from './outfit-card.tsx';
import { type Envelope, firstPageOf, isEnvelope, Pagination } from './pagination.tsx';
import type { Question } from './question.ts';
import { Text } from './text.tsx';
import type { Writing } from './writing.ts';

export interface AnswerPageProperties {
  readonly site: Site;
  readonly answer: Answer;
  /** Undefined: there is no such path. */
  readonly route: Route | undefined;
  readonly parameters: QueryParameters;
  readonly orderings: readonly Choice[];
  readonly question: Question | undefined;
  readonly base: string | undefined;
  readonly hasGraphiQL: boolean;
  readonly writing: Writing;
  readonly media: Media;
}

export function AnswerPage(properties: AnswerPageProperties) {
  const { site, answer, route, parameters, orderings, question, writing } = properties;
  const isWrong = answer.status >= 400;
  const envelope = !isWrong && route?.list && isEnvelope(answer.json) ? answer.json : undefined;
  const name = route?.name ?? 'Outfit gateway';
  return (
    <Layout
      site={site}
      title={isWrong ? `${reasonOf(answer.status)} – ${name}` : name}
      path={route?.path}
    >
      <h1>{isWrong ? reasonOf(answer.status) : name}</h1>
      {isWrong ? <Problem {...properties} /> : route && <p class="lead">{route.description}</p>}
      <RequestLine answer={answer} />
      {orderings.length > 0 && !envelope && (
        <OrderingMenu choices={orderings} parameters={parameters} />
      )}
      {envelope && <List {...properties} envelope={envelope} />}
      <div class="panels">
        <div>
          <AnswerSection answer={answer} isOpen={!envelope || !isGallery(envelope)} />
          {route?.create && <WritingSection writing={writing} path={route.path} />}
        </div>
        {question && <QuestionSection {...properties} root={site.root} question={question} />}
      </div>
    </Layout>
  );
}

/** Other lists than of outfits are shown as their JSON. */
function isGallery({ results }: Envelope): boolean {
  return results.every(isOutfit);
}

function List({
  envelope,
  orderings,
  parameters,
  media,
}: AnswerPageProperties & { readonly envelope: Envelope }) {
  const { count, results } = envelope;
  const outfits = isGallery(envelope) ? results.filter(isOutfit) : [];
  const noun = isGallery(envelope) ? 'outfit' : 'record';
  return (
    <>
      <div class="bar">
        <p class="count">
          {count.toLocaleString('en')} {count === 1 ? noun : `${noun}s`}
        </p>
        {orderings.length > 0 && <OrderingMenu choices={orderings} parameters={parameters} />}
        <Pagination label="Pages" envelope={envelope} parameters={parameters} />
      </div>
      {outfits.length > 0 && (
        <>
          <ul class="grid">
            {outfits.map((outfit) => (
              <OutfitCard outfit={outfit} media={media} />
            ))}
          </ul>
          <Pagination label="Pages, below the list" envelope={envelope} parameters={parameters} />
        </>
      )}
      {results.length === 0 && <p class="empty">There is nothing here yet.</p>}
    </>
  );
}

/** What is wrong, and where to go from here. */
function Problem({ site, answer, route, parameters, writing }: AnswerPageProperties) {
  const firstPage = answer.status === 404 && route?.list ? firstPageOf(parameters) : undefined;
  const [listing] = site.links;
  return (
    <div class="problem">
      {messagesOf(answer.json).map(({ field, message }) => (
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
      {answer.status === 401 && <p>{writing.detail}</p>}
      {firstPage !== undefined ? (
        <p>
          <a href={firstPage}>To the first page</a>
        </p>
      ) : (
        !route &&
        listing && (
          <p>
            <a href={`${site.root}${listing.path}`}>To the listing</a>
          </p>
        )
      )}
    </div>
  );
}

/** The sentences of an error of Django REST Framework: one of the whole, or some of each field. */
function messagesOf(
  json: unknown,
): readonly { readonly field?: string; readonly message: string }[] {
  if (typeof json !== 'object' || json === null) return [];
  return Object.entries(json).flatMap(([field, messages]) =>
    [messages].flat().map((message) => ({
      ...(field === 'detail' || field === 'non_field_errors' ? {} : { field }),
      message: String(message),
    })),
  );
}

function WritingSection({ writing, path }: { readonly writing: Writing; readonly path: string }) {
  return (
    <section class="panel" aria-labelledby="writing">
      <h2 id="writing">Writing</h2>
      <p>
        <code>POST {path}</code> adds a record, from JSON or from a form.{' '}
        <code>OPTIONS {path}</code> tells its fields. It needs a token.
      </p>
      <p>{writing.detail}</p>
    </section>
  );
}
