// Facts on all pages: links of the service, and whether writing is possible.
import type { FastifyInstance } from 'fastify';
import {
  type Config,
  findWriteObstacle,
  type IdentityConfig,
  type WriteConfig,
} from '../../config.ts';
import { legacyOwnsWrites, writesOff } from '../../errors.ts';
import type { Route } from '../../rest/routes.ts';
import type { Media } from './pictures.tsx';

export type PagesConfig = IdentityConfig &
  WriteConfig &
  Pick<Config, 'graphiql' | 'mediaUrl' | 'publicUrl' | 'trustedDocumentsOnly' | 'videoUrl'>;

export interface Site {
  /** Base of addresses; empty for relative ones. */
  readonly root: string;
  readonly links: readonly Link[];
  readonly writing: Writing;
  readonly media: Media;
  readonly config: Pick<PagesConfig, 'graphiql' | 'trustedDocumentsOnly'>;
}

export interface Link {
  readonly rel: string;
  readonly title: string;
  readonly description: string;
  readonly path: string;
  readonly isForPeople: boolean;
}

/** Links to the paths that `app` serves. */
export function linksOf(
  app: FastifyInstance,
  routes: readonly Route[],
  { graphiql, legacyMode }: PagesConfig,
): readonly Link[] {
  const lists = routes.filter(({ list, path }) => list && !path.includes(':'));
  const links: readonly Link[] = [
    {
      rel: 'outfits',
      title: 'Outfits',
      description: 'Look through them: search, filters, and a page for each outfit and each user.',
      path: '/outfits/',
      isForPeople: true,
    },
    ...lists.map(({ name, description, path }, index) => ({
      rel: index === 0 ? 'listing' : path,
      title: index === 0 ? 'Listing' : name,
      description,
      path,
      isForPeople: true,
    })),
    {
      rel: 'graphql',
      title: graphiql ? 'GraphiQL' : 'GraphQL',
      description: 'Query exactly the fields you need, and browse the schema.',
      path: '/graphql',
      isForPeople: graphiql,
    },
    {
      rel: 'docs',
      title: 'API docs',
      description: 'Every path, parameter and answer, to try out in the browser.',
      path: '/api/docs',
      isForPeople: true,
    },
    {
      rel: 'openapi',
      title: 'OpenAPI',
      description: 'The same as a document, for generators of clients.',
      path: '/api/openapi.json',
      isForPeople: false,
    },
    {
      rel: 'health',
      title: 'Health',
      description: 'Whether requests are answered now.',
      path: '/health/ready',
      isForPeople: true,
    },
  ];
  // Below 100 percent, the old service answers paths below /api/ for some clients, and lacks these.
  const isOwn = ({ rel }: Link) => legacyMode.percent === 100 || !['docs', 'openapi'].includes(rel);
  return links.filter((link) => isOwn(link) && app.hasRoute({ method: 'GET', url: link.path }));
}

export interface Writing {
  readonly possible: boolean;
  readonly detail: string;
}

/** Whether clients can write, and what they need for it. */
export function writingOf(config: PagesConfig): Writing {
  const obstacle = findWriteObstacle(config);
  const details = {
    off: writesOff().message,
    legacy: legacyOwnsWrites().message,
    identity: 'This service is read-only: sign-in is not configured.',
    none: config.authWebhookUrl
      ? 'Writing needs a credential, such as a token or a session. Reading needs none.'
      : 'Writing needs a bearer token, in the header Authorization. Reading needs none.',
  };
  return { possible: obstacle === undefined, detail: details[obstacle ?? 'none'] };
}
