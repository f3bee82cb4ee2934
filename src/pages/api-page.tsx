// The page of a REST answer, as in the browsable API of Django REST Framework: the request, and the response.
import { type PageProperties, Problem, reasonOf } from './parts/answer.tsx';
import { Layout } from './parts/layout.tsx';
import { Pagination } from './parts/outfit.tsx';
import { JsonView, shownText, webAddressOf } from './parts/text.tsx';

export function ApiPage(properties: PageProperties) {
  const { site, answer, route, graphiql } = properties;
  const { method, target, status, headers, json } = answer;
  const isWrong = status >= 400;
  const reason = reasonOf(status);
  const name = route?.name ?? 'REST';
  const { next, previous } = (json ?? {}) as Readonly<Record<string, unknown>>;
  const linkOf = (link: unknown) => (typeof link === 'string' && webAddressOf(link)) || null;
  const [, pictures, query = ''] = /^\/api(\/outfits\/\d*)\/?(\?.*)?$/.exec(target) ?? [];
  return (
    <Layout site={site} title={isWrong ? `${reason} – ${name}` : name} path={route?.path}>
      <h1>{isWrong ? reason : name}</h1>
      {isWrong ? (
        // The JSON has the sentences.
        <Problem {...properties} messages={[]} />
      ) : (
        <p class="lead">{route?.description}</p>
      )}
      <div class="bar">
        <code class="request">
          {method} {shownText(target)}
        </code>
        {!isWrong && <strong class="right">{reason}</strong>}
        {pictures && !isWrong && <a href={`${site.root}${pictures}${query}`}>As a page</a>}
        {graphiql && <a href={graphiql}>In GraphiQL</a>}
        {(next !== undefined || previous !== undefined) && (
          <Pagination label="Pages" steps={{ Previous: linkOf(previous), Next: linkOf(next) }} />
        )}
      </div>
      <section class="panel" aria-label="Response">
        <details>
          <summary>Headers</summary>
          <pre class="code">
            {headers.map(([header, value]) => `${header}: ${shownText(value)}\n`)}
          </pre>
        </details>
        <JsonView value={json} />
        {route?.create && (
          <p>
            <code>POST {route.path}</code> adds a record: <code>OPTIONS {route.path}</code>{' '}
            describes its fields. {site.writing}
          </p>
        )}
      </section>
    </Layout>
  );
}
