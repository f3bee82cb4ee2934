// Connections of outfits: outfitConnection(...), and outfitConnection and likedOutfits of a user.
import type { InputShapeFromFields } from '@pothos/core';
import type { OutfitFilter as FilterOfList } from '../../outfits/filter.ts';
import { createOutfitList, type OutfitList } from '../../outfits/lists/list.ts';
import { sortKeyOf } from '../../outfits/ordering.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import type { Visibility } from '../../outfits/visibility.ts';
import { builder } from '../builder.ts';
import { type Context, visibleLikes } from '../context.ts';
import type { WeighFilter } from '../plugins/cost.ts';
import { countItems, defineConnection, resolveConnection } from './connection.ts';
import { Outfit } from './outfit.ts';
import { filterOf, isTooShort, listArguments, orderingOf } from './outfit-arguments.ts';
import { weighFilter, weighFilterOfUser } from './outfit-page.ts';
import { User } from './user.ts';
import { Viewer } from './viewer.ts';

const names = { names: 'outfits', isSearched: true } as const;
const OutfitConnection = defineConnection(Outfit, { ...names, name: 'Outfit' });
const LikedOutfitConnection = defineConnection(Outfit, {
  ...{ ...names, name: 'LikedOutfit', isOfLikes: true },
});

const connectionArguments = builder.args((t) => ({
  ...t.connectionArgs(),
  ...listArguments,
}));

type ConnectionArguments = InputShapeFromFields<typeof connectionArguments>;

builder.queryField('outfitConnection', (t) =>
  t.field({
    type: OutfitConnection,
    nullable: true,
    description:
      'All outfits as a Relay connection, for scrolling. A cursor holds its place in the list even when its outfit is deleted.',
    args: connectionArguments,
    extensions: { countItems, weighFilter },
    resolve: (_root, args, context) =>
      resolveOutfits(args, context, (filter) =>
        createOutfitList(context.read, context.visibility, filter),
      ),
  }),
);

builder.prismaObjectField(User, 'outfitConnection', (t) =>
  t.field({
    type: OutfitConnection,
    nullable: true,
    description: 'The outfits of this user as a Relay connection, for scrolling.',
    args: connectionArguments,
    extensions: { countItems, weighFilter: weighFilterOfUser },
    resolve: ({ id }, args, context) =>
      resolveOutfits(args, context, (filter) => context.userLists(id, filter)),
  }),
);

// Even without a filter, all likes of the user are read.
const weighLiked: WeighFilter = (args) => Math.max(weighFilterOfUser(args), 1);

function resolveLiked(
  userId: number,
  args: ConnectionArguments,
  likes: Visibility,
  context: Context,
) {
  return resolveOutfits(args, context, (filter) =>
    context.userLists(userId, { ...filter, liked: likes }),
  );
}

builder.objectField(Viewer, 'likedOutfits', (t) =>
  t.field({
    type: LikedOutfitConnection,
    nullable: true,
    description: 'The visible outfits that the viewer likes, as a Relay connection.',
    args: connectionArguments,
    extensions: { countItems, weighFilter: weighLiked },
    resolve: ({ userId }, args, context) => resolveLiked(userId, args, { private: 'all' }, context),
  }),
);

builder.prismaObjectField(User, 'likedOutfits', (t) =>
  t.field({
    type: LikedOutfitConnection,
    nullable: true,
    description:
      'The visible outfits that this user likes, as a Relay connection. Likes are private: others than the user see those of their own outfits only, unless LIKERS=public.',
    args: connectionArguments,
    extensions: { countItems, weighFilter: weighLiked },
    resolve: ({ id }, args, context) => resolveLiked(id, args, visibleLikes(context), context),
  }),
);

async function resolveOutfits(
  args: ConnectionArguments,
  context: Context,
  listOf: (filter: FilterOfList) => OutfitList,
) {
  const ordering = orderingOf(args.ordering);
  const filter = filterOf(args.filter);
  const keyOf = (row: OutfitRow) => sortKeyOf(row, ordering.field);
  const found = await resolveConnection(listOf(filter), args, ordering, keyOf, context);
  return { ...found, searchTooShort: isTooShort(filter) };
}
