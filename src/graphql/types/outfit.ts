// Outfit: outfit(...).
import { defaultFieldResolver } from 'graphql';
import { hashtagsIn } from '../../outfits/filter.ts';
import { devices } from '../../outfits/writes/input.ts';
import { builder, DateTime } from '../builder.ts';
import { globalIdOf, identityArguments, Node, readIdentity } from './node.ts';
import { Device } from './outfit-input.ts';
import { User } from './user.ts';

/** As `OutfitRow` has it: compiled queries call nothing for such a field, and a page has a hundred of them. */
const resolve = defaultFieldResolver as () => never;

/** Null for none, and for one that an import has brought and nobody can choose here. */
const deviceOf = (name: string) => devices.find((device) => device === name) ?? null;

export const Outfit = builder.prismaObject('Outfit', {
  interfaces: [Node],
  // Always joined: a join is cheaper than another statement.
  include: { user: true },
  fields: (t) => ({
    id: t.id({
      description: 'Global identifier, for `node` and for client caches.',
      resolve: ({ id }) => globalIdOf('Outfit', id),
    }),
    databaseId: t.exposeInt('id', { description: 'Number of the outfit: its `id` in REST.' }),
    title: t.exposeString('title'),
    description: t.exposeString('description'),
    hashtags: t.stringList({
      description:
        'The hashtags of the title and the description, in their order, each once and without `#`. The filter `hashtags` finds the outfit by them.',
      resolve: ({ title, description }) => hashtagsIn(`${title}\n${description}`),
    }),
    url: t.string({
      nullable: true,
      description:
        'Its page for people, as a link to share: absolute with the setting PUBLIC_URL, else a path on this host. Null where pages are switched off.',
      resolve: ({ id }, _args, { config }) =>
        config.browsable ? `${config.publicUrl ?? ''}/outfits/${id}` : null,
    }),
    imageKey: t.string({
      description: 'Absolute URL of the image.',
      resolve: (outfit, _args, { config }) => `${config.mediaUrl}/${outfit.imageKey}`,
    }),
    imageOriginalUrl: t.string({
      description:
        'Absolute URL of the image as it was uploaded; the same as imageKey for most outfits.',
      resolve: (outfit, _args, { config }) => `${config.mediaUrl}/${outfit.imageOriginalKey}`,
    }),
    complete: t.exposeBoolean('complete', {
      deprecationReason: 'It is true for every outfit; REST has it for old apps.',
    }),
    likes: t.int({
      description: 'Number of likes, 0 or more.',
      resolve,
    }),
    user: t.field({
      type: User,
      description: 'The user who published the outfit.',
      resolve: (outfit) => outfit.user,
    }),
    quality: t.exposeInt('quality'),
    private: t.exposeBoolean('private'),
    backgroundImage: t.string({
      nullable: true,
      description: 'Always null: no outfit has a background image.',
      deprecationReason: 'It is null for every outfit; REST has it for old apps.',
      resolve,
    }),
    backgroundColor: t.exposeString('backgroundColor'),
    video: t.string({
      nullable: true,
      description: 'Absolute URL of the video, or null.',
      resolve: (outfit, _args, { config }) =>
        outfit.videoKey === null ? null : `${config.videoUrl}/${outfit.videoKey}`,
    }),
    playVideo: t.exposeBoolean('playVideo'),
    created: t.expose('created', { type: DateTime, description: 'When the outfit was published.' }),
    modified: t.expose('modified', {
      type: DateTime,
      description: 'When the owner last changed it; equal to created if never.',
    }),
    creationDevice: t.exposeString('creationDevice'),
    creationDeviceType: t.field({
      type: Device,
      nullable: true,
      description: 'creationDevice as inputs and filters have it; null for an unknown one.',
      resolve: ({ creationDevice }) => deviceOf(creationDevice),
    }),
    modificationDevice: t.exposeString('modificationDevice'),
    modificationDeviceType: t.field({
      type: Device,
      nullable: true,
      description:
        'modificationDevice as inputs have it; null for an unknown one, and if there was no change.',
      resolve: ({ modificationDevice }) => deviceOf(modificationDevice),
    }),
  }),
});

builder.queryField('outfit', (t) =>
  t.field({
    type: Outfit,
    nullable: true,
    description: 'The outfit with this id or this number; null if the viewer can see none.',
    args: identityArguments,
    resolve: (_root, args, { records }) => records.outfits.load(readIdentity('Outfit', args)),
  }),
);
