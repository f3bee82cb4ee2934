// GraphiQL from this process, as one page.
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Compressible, entityTag, findForm, sendForm } from '../http/representation.ts';
import { logo } from '../logo.ts';
import { completePage } from './graphiql-bundle.ts';
import { examples } from './graphiql-examples.ts';

const options = {
  title: 'Outfit gateway',
  logo,
  favicon: `data:image/svg+xml,${encodeURIComponent(logo)}`,
  defaultQuery: examples[0].query,
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

interface Page extends Compressible {
  readonly tag: string;
  readonly policy: string;
}

interface GraphiQLOptions {
  /** Whether the schema can be had below the page. */
  readonly hasSchema: boolean;
  /** Whether clients may be sent compressed answers. */
  readonly compresses: boolean;
}

/** Serves GraphiQL from this process: 9 MB of HTML that need nothing from the internet. */
export function createGraphiQL({
  hasSchema,
  compresses,
}: GraphiQLOptions): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  // Made on first use and then kept: most processes are never asked for it.
  let page: Promise<Page> | undefined;

  return async (request, reply) => {
    page ??= renderPage(hasSchema).catch((error) => {
      // What fails now may succeed the next time.
      page = undefined;
      throw error;
    });
    const { policy, tag } = await page;
    const contentType = 'text/html; charset=utf-8';
    // On a 304, too.
    reply.header('Content-Security-Policy', policy).header('Content-Type', contentType);
    const form = await findForm(await page, request, compresses);
    return sendForm(request, reply, form, {
      contentType,
      tag,
      shareable: true,
      cacheControl: 'public, max-age=3600',
    });
  };
}

async function renderPage(hasSchema: boolean): Promise<Page> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const html = completePage(renderGraphiQL(options).trim(), options, hasSchema);
  const body = Buffer.from(html);
  return { body, tag: entityTag(body), policy: policyFor(html) };
}
