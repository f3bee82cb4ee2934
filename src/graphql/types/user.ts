// User: user(...).
import { parseUrl } from '../../config/values.ts';
import { builder } from '../builder.ts';
import { badUserInput } from '../errors.ts';
import { globalIdOf, identityArguments, Node, readIdentity } from './node.ts';

export const User = builder.prismaObject('User', {
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Global identifier, for `node` and for client caches.',
      resolve: ({ id }) => globalIdOf('User', id),
    }),
    databaseId: t.exposeInt('id', { description: 'Number of the user: its `id` in REST.' }),
    avatarKey: t.exposeString('avatarKey'),
    avatarUrl: t.string({
      nullable: true,
      description: 'Absolute URL of the avatar, or null.',
      // An import may have brought a whole URL.
      resolve: ({ avatarKey }, _args, { config }) =>
        avatarKey === '' ? null : (parseUrl(avatarKey)?.href ?? `${config.mediaUrl}/${avatarKey}`),
    }),
    username: t.exposeString('username'),
    firstName: t.exposeString('firstName'),
    lastName: t.exposeString('lastName'),
    likesReceived: t.int({
      description: 'Likes of all their outfits that the viewer may see, at most 2147483647.',
      resolve: ({ id }, _args, { userLists }) => userLists(id, {}).likes(),
    }),
  }),
});

builder.queryField('user', (t) =>
  t.field({
    type: User,
    nullable: true,
    description: 'One user or null, by exactly one of id, number and username.',
    args: {
      ...identityArguments,
      username: t.arg.string({
        description: 'Exact handle; of several users with it, the one with the lowest id.',
      }),
    },
    resolve: (_root, { username, ...identity }, { prisma }) => {
      const given = [...Object.values(identity), username].filter((value) => value != null);
      if (given.length !== 1) {
        throw badUserInput('Give exactly one of id, databaseId and username.');
      }
      if (typeof username !== 'string') {
        return prisma.user.findUnique({ where: { id: readIdentity('User', identity) } });
      }
      // PostgreSQL text cannot hold a NUL character, so no user can have it.
      if (username === '' || username.includes('\0')) return null;
      return prisma.user.findFirst({ where: { username }, orderBy: { id: 'asc' } });
    },
  }),
);
