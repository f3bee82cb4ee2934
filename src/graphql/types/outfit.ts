// Outfit: outfit(...).
import type { OutfitRow } from '../../outfits/row.ts';
import { builder, DateTime } from '../builder.ts';
import { badUserInput } from '../errors.ts';
import { globalIdOf, Node, readGlobalId } from './node.ts';
import { User } from './user.ts';

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
    imageKey: t.string({
      description: 'Absolute URL of the image.',
      resolve: (outfit, _args, { config }) => `${config.mediaUrl}/${outfit.imageKey}`,
    }),
    imageOriginalUrl: t.string({
      description:
        'Absolute URL of the image as it was uploaded; the same as imageKey for most outfits.',
      resolve: (outfit, _args, { config }) => `${config.mediaUrl}/${outfit.imageOriginalKey}`,
    }),
    complete: t.exposeBoolean('complete'),
    likes: t.int({
      description: 'Number of likes, 0 or more.',
      resolve: (outfit) => (outfit as OutfitRow).likes,
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
      resolve: () => null,
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
    modificationDevice: t.exposeString('modificationDevice'),
  }),
});

builder.queryField('outfit', (t) =>
  t.field({
    type: Outfit,
    nullable: true,
    description: 'One visible outfit or null, by exactly one of id and number.',
    args: {
      id: t.arg.id({ description: 'Global identifier of the outfit.' }),
      databaseId: t.arg.int({ description: 'Number of the outfit.' }),
    },
    resolve: (_root, { id, databaseId }, { records }) => {
      const byNumber = typeof databaseId === 'number';
      if (byNumber === (typeof id === 'string')) {
        throw badUserInput('Give either id or databaseId, not both and not neither.');
      }
      return records.outfits.load(byNumber ? databaseId : readGlobalId('Outfit', id ?? ''));
    },
  }),
);
