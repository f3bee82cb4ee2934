// What commits have changed, as the table outfit_changes tells it, and which answers that invalidates.

export interface OutfitKeys {
  readonly id: number;
  readonly userId: number;
  readonly private: boolean;
  readonly likes: number;
  /** Microseconds. */
  readonly created: bigint;
  readonly modified: bigint;
}

/** Row image before or after a change. Outfits and their likes are two tables: a change has the columns of one of them. */
export type RowImage = Pick<OutfitKeys, 'id' | 'private' | 'userId'> & {
  readonly [Field in 'created' | 'likes' | 'modified']?: OutfitKeys[Field] | undefined;
};

/**
 * Columns as the bits of a mask. `owner` is the user and the privacy, `likesOwner` the same in the row of the likes;
 * `content` stands for all other columns of an outfit, and is set by each change of it.
 */
export const columnBits = {
  ...{ owner: 1, created: 2, modified: 4, content: 8 },
  ...{ likesOwner: 16, likes: 32 },
} as const;

/** One outfit, or its number of likes, that was inserted (no `before`), deleted (no `after`) or updated. */
export interface OutfitChange {
  readonly id: number;
  readonly before: RowImage | undefined;
  readonly after: RowImage | undefined;
  /** Mask of `columnBits`. */
  readonly changedColumns: number;
}

export interface Changes {
  readonly outfits: readonly OutfitChange[];
  /** Ids of users that were inserted, deleted or updated. */
  readonly users: readonly number[];
}

/** The columns of outfit_changes for an outfit before a change (`old_`) and after it (`new_`). */
type Side<Prefix extends 'old' | 'new'> = {
  readonly [Name in `${Prefix}_${'created' | 'modified'}`]: bigint | null;
} & { readonly [Name in `${Prefix}_${'likes' | 'user_id'}`]: number | null } & {
  readonly [Name in `${Prefix}_private`]: boolean | null;
};

export type ChangeRow = { readonly outfit_id: number | null } & Side<'old'> & Side<'new'>;

/** @returns undefined when anything may have changed */
export function readChanges(rows: readonly ChangeRow[]): Changes | undefined {
  const outfits: OutfitChange[] = [];
  const users: number[] = [];
  for (const row of rows) {
    const { outfit_id: id, old_user_id: oldUser, new_user_id: newUser } = row;
    const ofUsers = [oldUser, newUser].filter((user) => user !== null);
    if (ofUsers.length === 0) return undefined;
    if (id === null) users.push(...ofUsers);
    else outfits.push(changeOf(id, keysOf(row, 'old'), keysOf(row, 'new')));
  }
  return { outfits, users };
}

function keysOf(row: ChangeRow, side: 'old' | 'new'): RowImage | undefined {
  const userId = row[`${side}_user_id`];
  if (userId === null) return undefined;
  return {
    id: row.outfit_id as number,
    userId,
    private: row[`${side}_private`] as boolean,
    likes: row[`${side}_likes`] ?? undefined,
    created: row[`${side}_created`] ?? undefined,
    modified: row[`${side}_modified`] ?? undefined,
  };
}

export function changeOf(
  id: number,
  before: RowImage | undefined,
  after: RowImage | undefined,
): OutfitChange {
  const bitIf = (field: keyof RowImage, bit: number) =>
    before?.[field] === after?.[field] ? 0 : bit;
  const owner = (bit: number) => bitIf('userId', bit) | bitIf('private', bit);
  const changedColumns =
    (before ?? after)?.likes === undefined
      ? columnBits.content |
        owner(columnBits.owner) |
        bitIf('created', columnBits.created) |
        bitIf('modified', columnBits.modified)
      : owner(columnBits.likesOwner) | bitIf('likes', columnBits.likes);
  return { id, before, after, changedColumns };
}

export interface ListPart {
  /** Mask of the columns that it depends on: `invalidates` is called only for a change of one of them. */
  readonly columns: number;
  /** Whether one change invalidates it. Changes are never netted: an answer may have been read between two of them. */
  readonly invalidates: (before: RowImage | undefined, after: RowImage | undefined) => boolean;
}

/** Cache dependencies of an answer: as long as nothing of that changes, it is the same answer. */
export interface Dependencies {
  /** Outfits, or numbers that no outfit had. */
  readonly outfits?: Iterable<number>;
  readonly users?: Iterable<number>;
  /** Whether any user could have been meant: by a name, say. */
  readonly anyUser?: boolean;
  readonly lists?: readonly ListPart[];
}

/** Of several readings; undefined (any commit invalidates it) if one of them is. */
export function dependenciesOfAll(
  all: readonly (Dependencies | undefined)[],
): Dependencies | undefined {
  const known = all.filter((dependencies) => dependencies !== undefined);
  if (known.length < all.length) return undefined;
  return {
    outfits: new Set(known.flatMap(({ outfits = [] }) => [...outfits])),
    users: new Set(known.flatMap(({ users = [] }) => [...users])),
    anyUser: known.some(({ anyUser }) => anyUser === true),
    lists: known.flatMap(({ lists = [] }) => lists),
  };
}

export function sizeOf(dependencies: Dependencies | undefined): number {
  if (!dependencies) return 0;
  const { outfits = [], users = [], lists = [] } = dependencies;
  return 16 * ([...outfits].length + [...users].length) + 500 * lists.length;
}

/** Most changes that are kept: asking about all of them takes some hundredths of a millisecond. */
const maxChanges = 10_000;

interface Noted extends OutfitChange {
  readonly version: number;
}

/** Keeps what was committed. Answers ask when they are wanted: a change costs the same however many there are. */
export class ChangeLog {
  /** The latest version. */
  current = 0;
  /** What was read before this version may have been changed by anything. */
  oldestKnown = 0;
  #outfitChanges: Noted[] = [];
  /** When an outfit or a user was last seen to have changed. */
  readonly #outfits = new Map<number, number>();
  readonly #users = new Map<number, number>();
  #anyUser = 0;

  /** @param changes what was committed since the latest version; undefined: nobody knows what */
  add(changes: Changes | undefined): void {
    this.current += 1;
    if (!changes) this.#forget(this.current);
    for (const change of changes?.outfits ?? []) {
      this.#outfitChanges.push({ ...change, version: this.current });
      this.#outfits.set(change.id, this.current);
    }
    for (const id of changes?.users ?? []) {
      this.#users.set(id, this.current);
      this.#anyUser = this.current;
    }
    if (this.#outfitChanges.length > maxChanges || this.#users.size > maxChanges) {
      this.#forget(this.#outfitChanges.at(-maxChanges / 2)?.version ?? this.current);
    }
  }

  /** Whether what was read may differ by now. @param since no later than the reading's begin, or when this was false */
  isInvalidated(dependencies: Dependencies | undefined, since: number): boolean {
    if (since === this.current) return false;
    if (since < this.oldestKnown || !dependencies) return true;
    const { outfits = [], users = [], lists = [], anyUser = false } = dependencies;
    if (anyUser && this.#anyUser > since) return true;
    for (const id of outfits) if ((this.#outfits.get(id) ?? 0) > since) return true;
    for (const id of users) if ((this.#users.get(id) ?? 0) > since) return true;
    return lists.some((list) => this.#isListInvalidated(list, since));
  }

  #isListInvalidated({ columns, invalidates }: ListPart, since: number): boolean {
    for (let index = this.#outfitChanges.length - 1; index >= 0; index--) {
      const change = this.#outfitChanges[index] as Noted;
      if (change.version <= since) return false;
      if (change.changedColumns & columns && invalidates(change.before, change.after)) return true;
    }
    return false;
  }

  #forget(until: number): void {
    this.oldestKnown = until;
    this.#outfitChanges = this.#outfitChanges.filter(({ version }) => version > until);
    for (const moments of [this.#outfits, this.#users]) {
      for (const [id, version] of moments) if (version <= until) moments.delete(id);
    }
  }
}
