// GraphiQL from this process, as one page.
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { logo } from '../logo.ts';
import { examples } from './graphiql-examples.ts';
import { preparePage } from './graphiql-page.js';
import { style } from './graphiql-style.ts';

const options = {
  title: 'Outfit gateway',
  logo,
  favicon: `data:image/svg+xml,${encodeURIComponent(logo)}`,
  defaultQuery: examples[0].query,
  // Headers hold bearer tokens: what stays in the browser can be stolen from there.
  shouldPersistHeaders: false,
};

// Comments are allowed there, and sent nowhere.
const headersHint = `// Reading needs no token. To write,
// take that of your sign-in, or make
// one, with AUTH_JWT_SECRET set:
//   npm run token -- --user 1
// It is kept nowhere.
// { "Authorization": "Bearer ..." }
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

/**
 * Serves GraphiQL from this process: 9 MB of HTML that need nothing from the internet.
 * @param hasSchema whether the schema can be had below the page
 */
export function createGraphiQL(
  hasSchema: boolean,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  // Made on first use and then kept: most processes are never asked for it.
  let page: Promise<Page> | undefined;

  return async (request, reply) => {
    page ??= renderPage(hasSchema);
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

async function renderPage(hasSchema: boolean): Promise<Page> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const text = completePage(renderGraphiQL(options).trim(), hasSchema);
  const html = Buffer.from(text);
  const etag = `"${createHash('sha256').update(html).digest('base64url')}"`;
  return { html, gzipped: await promisify(gzip)(html), etag, policy: policyFor(text) };
}

/** What Yoga's page lacks: the width of a phone, the history, and all that graphiql-page.js does. */
function completePage(html: string, hasSchema: boolean): string {
  const given = JSON.stringify(options);
  const variables = "variables: new URLSearchParams(location.search).get('variables') ?? undefined";
  const page = JSON.stringify({ examples, hasSchema, headersHint });
  const [, history = ''] = find(html, /([\w$]+)=\{title:"History",/);
  const additions: readonly (readonly [found: RegExp | string, added: string])[] = [
    [
      '<meta charset="utf-8" />',
      '<meta charset="utf-8" /><meta name="viewport" content="width=device-width, initial-scale=1" />',
    ],
    ['</head>', `<style>${style}</style></head>`],
    ['<script>', `<script>globalThis.graphiqlOptions = (${preparePage})(${page});`],
    [/plugins:\[(?=[\w$]+\],schemaDescription:)/, `plugins:[${history},`],
    [given, `{ ...${given}, ${variables}, ...globalThis.graphiqlOptions }`],
  ];
  let completed = html;
  for (const [found, added] of additions) {
    find(completed, found);
    completed = completed.replace(found, () => added);
  }
  return completed;
}

/** @throws when another version of the bundle is made otherwise */
function find(html: string, found: RegExp | string): readonly string[] {
  const match = typeof found === 'string' ? html.includes(found) && [found] : found.exec(html);
  if (!match) throw new Error(`The page of GraphiQL has no ${found}.`);
  return match;
}
