// Streams what is exported by keyset pagination, in constant memory: the records of the listing, or the rows beside them.
// In SQL: pages of ten thousand rows, behind keys of two columns.
import { execute, getOperationAST } from 'graphql';
import type { Config } from '../../config/config.ts';
import type { Database } from '../../database/database.ts';
import type { ReadRows } from '../../database/read.ts';
import {
  ExportOutfitsDocument as document,
  type ExportOutfitsQuery,
  type ExportOutfitsQueryVariables,
} from '../../generated/rest.ts';
import { type Context, ContextFactory } from '../../graphql/context.ts';
import { compileQuery } from '../../graphql/plugins/compiled-queries.ts';
import { schema } from '../../graphql/schema.ts';
import { encodeJson } from '../../http/representation.ts';

type Range = NonNullable<ExportOutfitsQuery['range']>;
type ExportedRecord = Range['edges'][number]['node'];

/** @param since only records that were created or modified after it, in no defined order; with six digits, as in records */
export async function* readRecords(
  { pool, prisma }: Pick<Database, 'pool' | 'prisma'>,
  read: ReadRows,
  config: Pick<Config, 'mediaUrl' | 'pageSize' | 'videoUrl'>,
  since?: string,
): AsyncGenerator<readonly Buffer[]> {
  const everything = {
    ...{ ...config, browsable: false, publicUrl: undefined },
    ...({ privateOutfits: 'listed', likers: 'private' } as const),
  };
  const contexts = new ContextFactory(everything, { pool, prisma, read });
  const walk = createWalk(() =>
    contexts.createPersonal({ viewer: undefined, idempotencyKey: undefined }),
  );
  if (since === undefined) {
    for await (const records of walk('CREATED_DESC')) yield records.map(encodeJson);
    return;
  }
  // Timestamps of equal length compare as text. Each walk ends at the first older record.
  for await (const records of walk('MODIFIED_DESC')) {
    const newer = records.filter(({ modified }) => modified > since);
    yield newer.map(encodeJson);
    if (newer.length < records.length) break;
  }
  for await (const records of walk('CREATED_DESC')) {
    const newer = records.filter(({ created }) => created > since);
    yield newer.filter(({ modified }) => modified <= since).map(encodeJson);
    if (newer.length < records.length) break;
  }
}

type Walk = (
  ordering: NonNullable<ExportOutfitsQueryVariables['ordering']>,
) => AsyncGenerator<ExportedRecord[]>;

function createWalk(createContext: () => Context): Walk {
  const operation = getOperationAST(document);
  const compiled = operation && compileQuery(schema, document, operation);
  const readRange = async (variables: ExportOutfitsQueryVariables): Promise<Range> => {
    // A new context per query: its loaders cache rows.
    const contextValue = createContext();
    const { data, errors } = compiled
      ? await compiled.run(contextValue, variables)
      : await execute({ schema, document, contextValue, variableValues: variables });
    const [error] = errors ?? [];
    if (error) throw error.originalError ?? error;
    return (data as unknown as { readonly range: Range }).range;
  };
  return async function* (ordering) {
    let after: string | null = null;
    for (let hasNext = true; hasNext; ) {
      const { edges, pageInfo }: Range = await readRange({ ordering, after });
      yield edges.map(({ node }) => node);
      after = pageInfo.endCursor;
      hasNext = pageInfo.hasNextPage;
    }
  };
}

const pageSize = 10_000;

/** By keyset pagination over $1 and $2, the last keys. The first columns are the keys; users have the shape of REST. */
const statements = {
  likes: `SELECT outfit_id AS outfit, user_id AS user FROM outfit_likes
    WHERE (outfit_id, user_id) > ($1::bigint, $2::bigint) ORDER BY outfit_id, user_id LIMIT ${pageSize}`,
  users: `SELECT id, avatar_key, username, first_name, last_name FROM users
    WHERE id > $1::bigint AND $2::bigint = 0 ORDER BY id LIMIT ${pageSize}`,
};

type Row = { readonly id?: number; readonly outfit?: number; readonly user?: number };

/** Likes and users as import --likes and --users read them. */
export async function* readTable(
  read: ReadRows,
  table: keyof typeof statements,
): AsyncGenerator<readonly Buffer[]> {
  let last = [-(2 ** 31) - 1, 0];
  for (;;) {
    const rows = await read<Row>(statements[table], last);
    yield rows.map(encodeJson);
    const { id, outfit, user } = rows.at(-1) ?? {};
    if (rows.length < pageSize) return;
    last = [outfit ?? id ?? 0, user ?? 0];
  }
}
