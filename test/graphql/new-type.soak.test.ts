// CONTRIBUTING.md, "How to add a type", walked in a copy of the sources: comments on an outfit.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { useFolder } from '../support/cli/folder.ts';
import { root } from '../support/documents/page.ts';
import { makeEmptyDatabase } from '../support/gateway.ts';

const model = `
/// A comment on an outfit.
model Comment {
  /// Number of the comment.
  id       Int    @id @default(autoincrement())
  /// What it says.
  text     String
  outfitId Int    @map("outfit_id")
  outfit   Outfit @relation(fields: [outfitId], references: [id], onDelete: Cascade)
  userId   Int    @map("user_id")
  /// Who wrote it.
  user     User   @relation(fields: [userId], references: [id], onDelete: Cascade)

  @@index([outfitId, id])
  @@map("comments")
}
`;

const migration = `
CREATE TABLE "comments" (
    "id" SERIAL NOT NULL,
    "text" TEXT NOT NULL,
    "outfit_id" INTEGER NOT NULL,
    "user_id" INTEGER NOT NULL,
    CONSTRAINT "comments_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "comments_outfit_id_id_idx" ON "comments"("outfit_id", "id");
ALTER TABLE "comments" ADD CONSTRAINT "comments_outfit_id_fkey" FOREIGN KEY ("outfit_id") REFERENCES "outfits"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "comments" ADD CONSTRAINT "comments_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;
SELECT record_changes_of('comments');
`;

const type = `
import { builder } from '../builder.ts';
import { FieldError } from '../../errors.ts';
import { readGlobalId } from './node.ts';
import { Outfit } from './outfit.ts';
import { requireViewer } from './outfit-mutations.ts';

const Comment = builder.prismaObject('Comment', {
  fields: (t) => ({
    databaseId: t.exposeInt('id'),
    text: t.exposeString('text'),
    user: t.relation('user'),
  }),
});

builder.prismaObjectField(Outfit, 'comments', (t) =>
  t.relation('comments', { description: 'The comments, oldest first.', query: { orderBy: { id: 'asc' } } }),
);

builder.mutationField('createComment', (t) =>
  t.prismaField({
    type: Comment,
    nullable: true,
    description: 'Comments on an outfit.',
    args: {
      id: t.arg.id({ required: true, description: 'The outfit.' }),
      text: t.arg.string({ required: true, description: 'The text.' }),
    },
    resolve: async (query, _root, { id, text }, context) => {
      const { userId } = requireViewer(context);
      const outfit = await context.records.outfits.load(readGlobalId('Outfit', id, 'id'));
      if (!outfit) throw new FieldError('NOT_FOUND', 'There is no such outfit.');
      return context.prisma.comment.create({ ...query, data: { text, outfitId: outfit.id, userId } });
    },
  }),
);

builder.mutationField('deleteComment', (t) =>
  t.boolean({
    description: 'Deletes a comment of the viewer.',
    args: { id: t.arg.int({ required: true, description: 'Number of the comment.' }) },
    resolve: async (_root, { id }, context) => {
      const { userId } = requireViewer(context);
      return (await context.prisma.comment.deleteMany({ where: { id, userId } })).count > 0;
    },
  }),
);
`;

/** Prints what each request returned, and the statements that it sent. */
const script = `
import { SignJWT } from 'jose';
import { buildApp } from './src/app.ts';
import { readConfig } from './src/config/config.ts';
import { openDatabase } from './src/database/database.ts';
import { migrate } from './src/database/migrations.ts';
import { saveOutfits } from './src/outfits/writes/bulk.ts';
import { forgetUser } from './src/outfits/writes/forget.ts';
import { generateOutfits } from './bench/outfits/generate.ts';

const secret = 'a secret of the tests, and of nothing else';
const config = readConfig({ ...process.env, AUTH_JWT_SECRET: secret });
const database = await openDatabase(config);
await migrate(database.pool, () => {});
const rows = [...generateOutfits({ outfits: 30, users: 3 })].map((row) => ({ ...row, private: false }));
await saveOutfits(database.pool, rows);
const app = await buildApp(config, database);
let sent = [];
const query = database.pool.query;
database.pool.query = (...given) => {
  if (!String(given[0].text ?? given[0]).includes('pg_current_snapshot')) sent.push(String(given[0].text ?? given[0]).replaceAll(/\\s+/g, ' ').trim().slice(0, 90));
  return query(...given);
};
const [one] = rows;
const other = rows.find((row) => row.userId !== one.userId);
const id = Buffer.from('Outfit:' + one.id).toString('base64');
const ask = async (text, user) => {
  sent = [];
  const token = await new SignJWT({}).setProtectedHeader({ alg: 'HS256' }).setSubject(String(user)).setExpirationTime('1h').sign(new TextEncoder().encode(secret));
  const headers = user ? { authorization: 'Bearer ' + token } : {};
  const answer = (await app.inject({ method: 'POST', url: '/graphql', headers, payload: { query: text } })).json();
  return { ...answer, sent: [...sent] };
};
const comments = '{ outfit(databaseId: ' + one.id + ') { comments { text user { databaseId } } } }';
const create = (text) => 'mutation { createComment(id: "' + id + '", text: "' + text + '") { databaseId text user { databaseId } } }';
const results = { user: one.userId, other: other.userId };
results.anonymous = await ask(create('no'));
results.empty = await ask(comments);
results.created = await ask(create('first'), one.userId);
await ask(create('second'), other.userId);
results.both = await ask(comments);
results.again = await ask(comments);
await database.pool.query("UPDATE outfits SET title = 'x' WHERE id = " + other.id);
results.unrelated = await ask(comments);
results.list = await ask('{ outfits(pageSize: 30) { results { comments { text user { username } } } } }');
results.deletedByOther = await ask('mutation { deleteComment(id: 1) }', other.userId);
results.deleted = await ask('mutation { deleteComment(id: 1) }', one.userId);
results.one = await ask(comments);
await forgetUser(database.pool, other.userId);
results.none = await ask(comments);
process.stdout.write(JSON.stringify(results));
await app.close();
await database.close();
`;

const folder = useFolder();

test('a type that is added as CONTRIBUTING.md says is read, written, invalidated and erased', {
  timeout: 300_000,
}, async () => {
  const copy = folder.at('copy');
  const copied = [
    ...['src', 'prisma', 'bench/outfits', 'test/support/graphql', 'test/support/models/dice.ts'],
    ...['package.json', 'prisma.config.ts', 'tsconfig.json'],
  ];
  for (const path of copied) cpSync(join(root, path), join(copy, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const edit = (path: string, change: (text: string) => string) => {
    const before = readFileSync(join(copy, path), 'utf8');
    const after = change(before);
    expect(after).not.toBe(before);
    writeFileSync(join(copy, path), after);
  };
  edit('prisma/schema.prisma', (text) =>
    text
      .replace('  outfits   Outfit[]\n', '  outfits   Outfit[]\n  comments  Comment[]\n')
      .replace(
        '  likedBy            OutfitLike[]\n',
        '  likedBy            OutfitLike[]\n  comments           Comment[]\n',
      )
      .concat(model),
  );
  mkdirSync(join(copy, 'prisma/migrations/1999_comments'));
  writeFileSync(join(copy, 'prisma/migrations/1999_comments/migration.sql'), migration);
  edit('src/database/prisma/dependencies.ts', (text) =>
    text.replace(`  User: 'users',`, `  User: 'users',\n  Comment: 'comments',`),
  );
  writeFileSync(join(copy, 'src/graphql/types/comment.ts'), type);
  edit('src/graphql/schema.ts', (text) =>
    text.replace(/^import '.\/types/m, `import './types/comment.ts';\n$&`),
  );
  writeFileSync(join(copy, 'walk.ts'), script);
  const { environment, remove } = await makeEmptyDatabase('PostgreSQL');
  onTestFinished(remove);
  const run = (...args: string[]) =>
    execFileSync(process.execPath, args, {
      cwd: copy,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
    });
  run(join(root, 'node_modules/prisma/build/index.js'), 'generate');
  run(join(root, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', '.');
  const { user, other, ...results } = JSON.parse(run('--import', 'tsx', 'walk.ts'));

  const first = { text: 'first', user: { databaseId: user } };
  const second = { text: 'second', user: { databaseId: other } };
  const shown = (...comments: object[]) => ({ outfit: { comments } });
  expect(results.anonymous.errors[0].extensions.code).toBe('UNAUTHENTICATED');
  expect(results.empty.data).toEqual(shown());
  expect(results.created.data).toEqual({ createComment: { databaseId: 1, ...first } });
  expect(results.both.data).toEqual(shown(first, second));
  expect([results.again, results.unrelated].map(({ sent }) => sent)).toEqual([[], []]);
  // The page; then by Prisma, for all of its outfits, these with their users, and the comments with theirs.
  expect(results.list.sent).toEqual(
    [/count_outfits/, /"outfits"."id"/, /"comments"."id"/, /"users"."id"/, /"users"."id"/].map(
      (text) => expect.stringMatching(text),
    ),
  );
  expect(results.deletedByOther.data).toEqual({ deleteComment: false });
  expect(results.deleted.data).toEqual({ deleteComment: true });
  expect(results.one.data).toEqual(shown(second));
  expect(results.none.data).toEqual(shown());
});
