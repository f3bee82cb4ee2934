// GraphiQL from this process, and the query it opens with.
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

// Lines of up to 40 characters are seen whole beside the documentation.
const exampleQuery = `# Outfits with the most likes, and who
# published them. To run it, press the
# play button or Ctrl-Enter. Ctrl-Space
# gives suggestions.
query MostLiked {
  outfits(ordering: LIKE_COUNT_DESC, page: 1) {
    count
    pageCount
    nextPage
    results {
      id
      title
      likes
      created
      user {
        username
      }
    }
  }
}
`;

/** A coat hanger, for the tab and the corner of the page. */
const logo =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="28" height="28" fill="none" stroke="#b0447a" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"><path d="M10 7a2 2 0 1 1 2 2v2l9 6a1 1 0 0 1-.6 1.8H3.6A1 1 0 0 1 3 17l9-6"/></svg>';

const options = {
  title: 'Outfit gateway',
  logo,
  favicon: `data:image/svg+xml,${encodeURIComponent(logo)}`,
  defaultQuery: exampleQuery,
  // Headers hold bearer tokens: what stays in the browser can be stolen from there.
  shouldPersistHeaders: false,
};

/** What the page may do: run its own script, and ask this gateway. */
function policyFor(html: string): string {
  const [, script = ''] = /<script>(.*?)<\/script>/s.exec(html) ?? [];
  const hash = createHash('sha256').update(script).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    // Its editor writes styles as it goes.
    "style-src 'unsafe-inline'",
    'font-src data:',
    'img-src data:',
    'worker-src blob:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

interface Page {
  readonly html: Buffer;
  readonly gzipped: Buffer;
  readonly etag: string;
  readonly policy: string;
}

/** Serves GraphiQL from this process: 9 MB of HTML that need nothing from the internet. */
export function createGraphiQL(): (
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<FastifyReply> {
  // Made on first use and then kept: most processes are never asked for it.
  let page: Promise<Page> | undefined;

  return async (request, reply) => {
    page ??= renderPage();
    const { html, gzipped, etag, policy } = await page;
    reply
      .header('Cache-Control', 'public, max-age=3600')
      .header('Content-Security-Policy', policy)
      .header('Content-Type', 'text/html; charset=utf-8')
      .header('ETag', etag)
      .header('Vary', 'Accept, Accept-Encoding');
    if (request.headers['if-none-match']?.includes(etag)) return reply.code(304).send();
    if (!/\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(request.headers['accept-encoding'] ?? ''))
      return reply.send(html);
    return reply.header('Content-Encoding', 'gzip').send(gzipped);
  };
}

async function renderPage(): Promise<Page> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const text = completePage(renderGraphiQL(options).trim());
  const html = Buffer.from(text);
  const etag = `"${createHash('sha256').update(html).digest('base64url')}"`;
  return { html, gzipped: await promisify(gzip)(html), etag, policy: policyFor(text) };
}

/** What Yoga's page lacks: the width of a phone, and the variables of a link that is shared. */
function completePage(html: string): string {
  const given = JSON.stringify(options);
  const variables = "variables: new URLSearchParams(location.search).get('variables') ?? undefined";
  return html
    .replace(
      '<meta charset="utf-8" />',
      '<meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1" />',
    )
    .replace(given, () => `{ ...${given}, ${variables} }`);
}
