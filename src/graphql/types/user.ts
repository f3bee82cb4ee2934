// User: user(...).
import { builder } from '../builder.ts';
import { badUserInput } from '../errors.ts';

export const User = builder.prismaObject('User', {
  fields: (t) => ({
    id: t.exposeInt('id'),
    avatarKey: t.exposeString('avatarKey'),
    username: t.exposeString('username'),
    firstName: t.exposeString('firstName'),
    lastName: t.exposeString('lastName'),
  }),
});

builder.queryField('user', (t) =>
  t.field({
    type: User,
    nullable: true,
    description:
      'One user by id or by username, or null if there is none. Give exactly one of the two.',
    args: {
      id: t.arg.int({ description: 'Identifier of the user.' }),
      username: t.arg.string({
        description: 'Exact handle. Should several users have it, the one with the lowest id.',
      }),
    },
    resolve: (_root, { id, username }, { prisma, records }) => {
      const byId = typeof id === 'number';
      if (byId === (typeof username === 'string')) {
        throw badUserInput('Give either id or username, not both and not neither.');
      }
      if (byId) return records.users.load(id);
      // PostgreSQL text cannot hold a NUL character, so no user can have it.
      if (!username || username.includes('\0')) return null;
      return prisma.user.findFirst({ where: { username }, orderBy: { id: 'asc' } });
    },
  }),
);
