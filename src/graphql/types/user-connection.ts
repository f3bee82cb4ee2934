// Connections of users: users(search), Outfit.likers(...).
import { createUserSearch } from '../../outfits/lists/users.ts';
import { builder } from '../builder.ts';
import { visibleLikes } from '../context.ts';
import { countItems, defineConnection, rangeArguments, resolveConnection } from './connection.ts';
import { Outfit } from './outfit.ts';
import { readSearch, refuseShortSearch } from './outfit-arguments.ts';
import { User } from './user.ts';

const UserConnection = defineConnection(User, { name: 'User', names: 'users', isSearched: true });
const LikerConnection = defineConnection(User, { name: 'Liker', names: 'users', isOfLikes: true });

const byId = { field: 'id', direction: 'asc' } as const;
const keyOf = ({ id }: { readonly id: number }) => ({ value: BigInt(id), id });

builder.queryField('users', (t) =>
  t.field({
    type: UserConnection,
    nullable: true,
    description: 'The users whose names match a search, as a Relay connection, lowest id first.',
    args: {
      search: t.arg.string({
        required: true,
        description: `Words that all occur in the username, first or last name: anywhere, in upper or lower case. Their length is limited as in the \`search\` of \`OutfitFilter\`; without one, the list is empty too.`,
        extensions: { refuse: refuseShortSearch },
      }),
      ...rangeArguments,
    },
    extensions: { countItems, weighFilter: () => 2 },
    resolve: async (_root, { search, ...range }, context) => {
      const words = readSearch('search', search) ?? [];
      const list = createUserSearch(context.read, words);
      const found = await resolveConnection(list, range, byId, keyOf, context);
      return { ...found, searchTooShort: words.length === 0 };
    },
  }),
);

builder.prismaObjectField(Outfit, 'likers', (t) =>
  t.field({
    type: LikerConnection,
    nullable: true,
    description:
      'The users who like it and whose like the viewer may see, as a Relay connection, lowest id first. Likes are private: the owner of the outfit sees all of them, others their own, unless LIKERS=public. Likes from before an import may be without users, so `totalCount` is not `likes`.',
    args: rangeArguments,
    extensions: { countItems, weighFilter: () => 1 },
    resolve: ({ id }, range, context) =>
      resolveConnection(context.likers(id, visibleLikes(context)), range, byId, keyOf, context),
  }),
);
