// What stands below each page for those who write programs: the answer, and how to ask for it.
import { STATUS_CODES } from 'node:http';
import { JsonView } from './json-view.tsx';
import { type Question, toCurl, toShareLink } from './question.ts';
import { shownText } from './text.tsx';

/** An answer as a program gets it, and what has been asked for. */
export interface Answer {
  readonly method: string;
  /** Path and query, as they came. */
  readonly target: string;
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly json: unknown;
}

export function reasonOf(status: number): string {
  return `${status} ${STATUS_CODES[status] ?? ''}`.trim();
}

/** Request and status in one line, as the first thing that is said of an answer. */
export function RequestLine({ answer: { method, target, status } }: { readonly answer: Answer }) {
  return (
    <p class="request">
      <code>
        {method} {shownText(target)}
      </code>
      <span class={status < 400 ? 'status' : 'status wrong'}>{reasonOf(status)}</span>
    </p>
  );
}

interface AnswerSectionProperties {
  readonly answer: Answer;
  /** Whether the JSON is all that there is to see, so that it need not be unfolded. */
  readonly isOpen: boolean;
}

export function AnswerSection({ answer, isOpen }: AnswerSectionProperties) {
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

interface QuestionSectionProperties {
  readonly question: Question;
  readonly root: string;
  /** Scheme and host of the request; undefined: it has sent none that a command could repeat. */
  readonly base: string | undefined;
  readonly hasGraphiQL: boolean;
}

export function QuestionSection({ question, root, base, hasGraphiQL }: QuestionSectionProperties) {
  return (
    <section class="panel" aria-labelledby="question">
      <h2 id="question">The same question in GraphQL</h2>
      <pre class="code">{shownText(question.query)}</pre>
      <p>With these variables:</p>
      <JsonView value={question.variables} />
      {hasGraphiQL && (
        <p>
          <a class="button" href={`${root}${toShareLink(question)}`}>
            Open it in GraphiQL
          </a>
        </p>
      )}
      {base !== undefined && (
        <details>
          <summary>As curl</summary>
          <pre class="code">{toCurl(base, question)}</pre>
        </details>
      )}
    </section>
  );
}
