// Layout of all pages: head, navigation, Content-Security-Policy.
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ComponentChildren, VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { type Config, canSignIn, type IdentityConfig } from '../../config/config.ts';
import { version } from '../../config/package.ts';
import { messageOf } from '../../errors.ts';
import type { RestOptions } from '../../rest/adapter.ts';
import type { DocumentOptions } from '../../rest/openapi/document.ts';
import type { Route } from '../../rest/routes.ts';
import { favicon, Icon, type Media } from './pictures.tsx';
import { style } from './style.ts';

const styleHash = createHash('sha256').update(style).digest('base64');

/** Headers of every page. Private: it may show the data of one viewer. */
export function pageHeaders(mediaUrl: string, videoUrl: string): Readonly<Record<string, string>> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'private, no-cache',
    'Content-Security-Policy': [
      "default-src 'none'",
      `style-src 'sha256-${styleHash}'`,
      `img-src 'self' data: ${new URL(mediaUrl).origin}`,
      `media-src ${new URL(videoUrl).origin}`,
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  };
}

export function toHtml(page: VNode): string {
  return `<!DOCTYPE html>\n${renderToString(page)}\n`;
}

interface LayoutProperties {
  readonly site: Site;
  readonly title: string;
  readonly path?: string | undefined;
  /** What other services show of a link to the page. @see https://ogp.me/ */
  readonly preview?: Readonly<Record<string, string | undefined>>;
  readonly children: ComponentChildren;
}

export function Layout({ site, title, path, preview, children }: LayoutProperties) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        {Object.entries({ title, site_name: 'Outfit gateway', ...preview }).map(
          ([name, content]) => content && <meta property={`og:${name}`} content={content} />,
        )}
        <title>{title}</title>
        <link rel="icon" href={favicon} />
        <style>{style}</style>
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header class="top">
          <a class="brand" href={`${site.root}/`}>
            <Icon name="hanger" />
            Outfit gateway
          </a>
          <nav aria-label="Service">
            <ul>
              {site.links.map((link) => (
                <li>
                  <a
                    href={`${site.root}${link.path}`}
                    aria-current={link.path === path ? 'page' : undefined}
                  >
                    {link.title}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        </header>
        <main id="main">{children}</main>
        <footer class="bottom">
          <p>
            Outfit gateway {version}. Pages are for people: programs get JSON from the same
            addresses.
          </p>
        </footer>
      </body>
    </html>
  );
}

type PagesConfig = IdentityConfig &
  Pick<Config, 'graphiql' | 'legacyMode' | 'mediaUrl' | 'publicUrl' | 'videoUrl'>;

export interface PagesOptions extends RestOptions {
  readonly config: PagesConfig & RestOptions['config'] & DocumentOptions['config'];
  /** Whether this process draws the pictures, below `/media/`. */
  readonly drawsPictures: boolean;
  /** Waits for the turn of a sender on the processor; undefined: go on now. */
  readonly takeTurn: (request: FastifyRequest) => Promise<void> | undefined;
}

export interface Site {
  /** Base of addresses; empty for relative ones. */
  readonly root: string;
  readonly links: readonly Link[];
  /** Whether clients can write, and what they need for it. */
  readonly writing: string;
  readonly media: Media;
  readonly config: Pick<Config, 'graphiql' | 'pageSize'>;
}

interface Link {
  readonly title: string;
  readonly path: string;
}

/** The menu: paths that `app` serves. */
export function linksOf(
  app: FastifyInstance,
  routes: readonly Route[],
  { graphiql, legacyMode }: PagesConfig,
): readonly Link[] {
  const lists = routes.filter(({ envelope, path }) => envelope && !path.includes(':'));
  const links = [
    { title: 'Outfits', path: '/outfits/' },
    ...lists.map(({ name, path }, index) => ({ title: index === 0 ? 'REST' : name, path })),
    ...(graphiql ? [{ title: 'GraphiQL', path: '/graphql' }] : []),
    // Below 100 percent, the old service answers paths below /api/ for some clients, and lacks it.
    ...(legacyMode.percent < 100 ? [] : [{ title: 'API docs', path: '/api/docs' }]),
  ];
  return links.filter(({ path }) => app.hasRoute({ method: 'GET', url: path }));
}

/** Who writes depends on attached tables, too, which come and go while a gateway runs. */
export function writingOf(config: PagesConfig, guardWrite: RestOptions['guardWrite']): string {
  try {
    guardWrite();
  } catch (error) {
    return messageOf(error);
  }
  if (!canSignIn(config)) return 'This service is read-only: sign-in is not configured.';
  return config.authWebhookUrl
    ? 'Writing needs a credential, such as a token or a session. Reading needs none.'
    : 'Writing needs a bearer token, in the header Authorization. Reading needs none.';
}
