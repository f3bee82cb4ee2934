import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

const exampleQuery = `# Outfits with the most likes, and who published them.
# Press the play button, or Ctrl-Enter; press Ctrl-Space for suggestions.
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
  const text = renderGraphiQL({ title: 'Outfit gateway', defaultQuery: exampleQuery }).trim();
  const html = Buffer.from(text);
  const etag = `"${createHash('sha256').update(html).digest('base64url')}"`;
  return { html, gzipped: await promisify(gzip)(html), etag, policy: policyFor(text) };
}
