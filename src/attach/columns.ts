// The columns of users, outfits and likes, and the SQL that makes each of a column of the old service.

export type Kind = 'users' | 'outfits' | 'likes';
type Type = 'boolean' | 'id' | 'number' | 'text' | 'time';

/** SQL of what a missing column, or a null, means; undefined: it must be there, and not be null. */
type Otherwise = string | ((sqlOf: (column: string) => string) => string) | undefined;

const optional = ['text', "''"] as const;
const needed = ['text', undefined] as const;

/** In the order in which they are written. */
const columns: Readonly<Record<Kind, Readonly<Record<string, readonly [Type, Otherwise]>>>> = {
  users: {
    id: ['id', undefined],
    username: needed,
    first_name: optional,
    last_name: optional,
    avatar_key: optional,
  },
  outfits: {
    id: ['id', undefined],
    title: optional,
    description: optional,
    image_key: needed,
    image_original_key: ['text', (sqlOf) => sqlOf('image_key')],
    complete: ['boolean', 'true'],
    user_id: ['id', undefined],
    quality: ['number', '3'],
    private: ['boolean', 'false'],
    background_color: optional,
    video_key: ['text', 'NULL'],
    play_video: ['boolean', (sqlOf) => `${sqlOf('video_key')} IS NOT NULL`],
    created: ['time', undefined],
    modified: ['time', (sqlOf) => sqlOf('created')],
    creation_device: ['text', "'web'"],
    modification_device: optional,
  },
  likes: {
    outfit_id: ['id', undefined],
    user_id: ['id', undefined],
    created: ['time', 'NULL'],
  },
};

/** Columns that are written, but the ids, which are the keys. */
export const writtenColumns = (kind: Kind) =>
  Object.keys(columns[kind]).filter((name) => name !== 'id');

/** SQL of each, and the names of types, as `format_type` writes them, whose values PostgreSQL casts to it without an error. */
const sqlTypes: Readonly<Record<Type, readonly [string, RegExp]>> = {
  boolean: ['boolean', /^boolean$/],
  id: ['integer', /^(?:smallint|integer|bigint)$/],
  number: ['integer', /^(?:smallint|integer|bigint)$/],
  text: ['text', /./],
  time: ['bigint', /^(?:timestamp\b.*|date|bigint)$/],
};

/** The number of likes, where it is a column of the outfits. */
export const numberOfLikes = 'likes';

/**
 * SQL of the rows of a kind as they are here, and what is wrong with each, or null, as `problem`.
 * @param select of the mapping @param types of its columns by name @param reject is called with a sentence
 */
export function carriedRows(
  kind: Kind,
  select: string,
  types: ReadonlyMap<string, string>,
  reject: (sentence: string) => never,
): string {
  const wanted = Object.entries(columns[kind]);
  const problems: string[] = [];
  const values = new Map<string, string>();
  const sqlOf = (name: string) => values.get(name) ?? 'NULL';
  for (const [name, [type, otherwise]] of wanted) {
    const found = types.get(name);
    const [sqlType, accepted] = sqlTypes[type];
    const fallback = typeof otherwise === 'function' ? otherwise(sqlOf) : otherwise;
    if (found !== undefined && !accepted.test(found)) {
      reject(`its column ${name} is of the type ${found}, which is not a ${type}`);
    }
    if (found === undefined && fallback === undefined) reject(`it has no column ${name}`);
    const given = `s."${name}"`;
    if (found !== undefined && fallback === undefined) {
      problems.push(`WHEN ${given} IS NULL THEN '${name} is null'`);
    }
    const fits = fitsIn(type, found ?? '', given);
    if (fits) problems.push(`WHEN NOT (${fits[0]}) THEN '${name} ${fits[1]}'`);
    const cast =
      type === 'time' && found !== 'bigint' ? `extract(epoch FROM ${given}) * 1000000` : given;
    const whole = `(${cast})::${sqlType}`;
    const value = fits ? `CASE WHEN ${fits[0]} THEN ${whole} END` : whole;
    // A key keeps its type: conditions on it are then found by the index of the old table.
    const isKey = type === 'id' && (kind === 'likes' || name === 'id');
    if (isKey) values.set(name, given);
    else if (found === undefined) values.set(name, `(${fallback})::${sqlType}`);
    else values.set(name, fallback === undefined ? value : `coalesce(${value}, ${fallback})`);
  }
  const list = [...values].map(([name, value]) => `${value} AS ${name}`);
  if (kind === 'outfits') {
    // Not EXISTS, for which a plan may read all users.
    problems.push(
      "WHEN (SELECT u.id FROM users u WHERE u.id = s.user_id) IS NULL THEN 'its user is not here'",
    );
    if (types.has(numberOfLikes)) list.push('coalesce(s.likes, 0)::bigint AS likes');
    else list.push('NULL::bigint AS likes');
  }
  list.push(`${kind === 'outfits' ? 's.user_id' : 0} AS needed_user_id`);
  list.push(`CASE ${problems.join(' ')} END AS problem`);
  return `SELECT ${list.join(', ')} FROM (${select}\n) s`;
}

function fitsIn(type: Type, found: string, value: string): readonly [string, string] | undefined {
  const isBig = found === 'bigint';
  if (type === 'time' && found !== '') {
    const years = isBig
      ? '-62135596800000000 AND 253402300799999999'
      : "'0001-01-01' AND '9999-12-31 23:59:59.999999'";
    return [`${value} BETWEEN ${years}`, 'is not in a year from 1 to 9999'];
  }
  if (!isBig || type === 'text') return undefined;
  return [`${value} BETWEEN -2147483648 AND 2147483647`, 'is beyond 31 bits'];
}
