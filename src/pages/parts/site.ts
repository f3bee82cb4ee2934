// Facts on all pages: links of the service, and whether writing is possible.
import type { FastifyInstance } from 'fastify';
import {
  type Config,
  findWriteObstacle,
  type IdentityConfig,
  type WriteConfig,
} from '../../config/config.ts';
import { legacyOwnsWrites, writesOff } from '../../errors.ts';
import type { RestOptions } from '../../rest/adapter.ts';
import type { DocumentOptions } from '../../rest/openapi/document.ts';
import type { Route } from '../../rest/routes.ts';
import type { Media } from './pictures.tsx';

type PagesConfig = IdentityConfig &
  WriteConfig &
  Pick<Config, 'graphiql' | 'mediaUrl' | 'publicUrl' | 'videoUrl'>;

export interface PagesOptions extends RestOptions {
  readonly config: PagesConfig & RestOptions['config'] & DocumentOptions['config'];
  /** Whether this process draws the pictures, below `/media/`. */
  readonly drawsPictures: boolean;
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
  const lists = routes.filter(({ list, path }) => list && !path.includes(':'));
  const links = [
    { title: 'Outfits', path: '/outfits/' },
    ...lists.map(({ name, path }, index) => ({ title: index === 0 ? 'REST' : name, path })),
    ...(graphiql ? [{ title: 'GraphiQL', path: '/graphql' }] : []),
    // Below 100 percent, the old service answers paths below /api/ for some clients, and lacks it.
    ...(legacyMode.percent < 100 ? [] : [{ title: 'API docs', path: '/api/docs' }]),
  ];
  return links.filter(({ path }) => app.hasRoute({ method: 'GET', url: path }));
}

export function writingOf(config: PagesConfig): string {
  const sentences = {
    off: writesOff().message,
    legacy: legacyOwnsWrites().message,
    identity: 'This service is read-only: sign-in is not configured.',
    none: config.authWebhookUrl
      ? 'Writing needs a credential, such as a token or a session. Reading needs none.'
      : 'Writing needs a bearer token, in the header Authorization. Reading needs none.',
  };
  return sentences[findWriteObstacle(config) ?? 'none'];
}
