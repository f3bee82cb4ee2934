// Viewer: viewer, Outfit.viewerHasLiked, Outfit.viewerCanUpdate.
import { builder } from '../builder.ts';
import { Outfit } from './outfit.ts';
import { User } from './user.ts';

export const Viewer = builder.objectRef<{ readonly userId: number }>('Viewer').implement({
  description: 'The signed-in user, identified by the bearer token.',
  fields: (t) => ({
    user: t.prismaField({
      type: User,
      nullable: true,
      description: 'The user; null if the account does not exist (any more).',
      resolve: (query, { userId }, _args, { prisma }) =>
        prisma.user.findUnique({ ...query, where: { id: userId } }),
    }),
  }),
});

builder.queryField('viewer', (t) =>
  t.field({
    type: Viewer,
    nullable: true,
    description: 'The signed-in user; null without a token.',
    resolve: (_root, _args, { viewer }) => viewer,
  }),
);

builder.prismaObjectField(Outfit, 'viewerHasLiked', (t) =>
  t.boolean({
    description: 'Whether the viewer likes it; false without a token.',
    resolve: ({ id }, _args, { viewerLikes }) => viewerLikes?.load(id) ?? false,
  }),
);

builder.prismaObjectField(Outfit, 'viewerCanUpdate', (t) =>
  t.boolean({
    description: 'Whether the viewer may change and delete it, as its owner or as staff.',
    resolve: ({ userId }, _args, { viewer }) =>
      viewer?.userId === userId || viewer?.isStaff === true,
  }),
);
