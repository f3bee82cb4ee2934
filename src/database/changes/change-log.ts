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

/** What a change tells: outfits and their likes are two rows, and a change of one tells nothing of the other. */
export type ToldKeys = Pick<OutfitKeys, 'id' | 'private' | 'userId'> & {
  readonly [Field in 'created' | 'likes' | 'modified']?: OutfitKeys[Field] | undefined;
};

/** What may change, as bits. `others` is always set for an outfit itself; `likesOwner` is the owner that likes tell. */
export const aspects = {
  ...{ owner: 1, created: 2, modified: 4, others: 8 },
  ...{ likesOwner: 16, likes: 32 },
} as const;

/** One outfit, or its number of likes, that was inserted (no `before`), deleted (no `after`) or updated. */
export interface OutfitChange {
  readonly id: number;
  readonly before: ToldKeys | undefined;
  readonly after: ToldKeys | undefined;
  /** What has changed of it, of `aspects`. */
  readonly aspects: number;
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

function keysOf(row: ChangeRow, side: 'old' | 'new'): ToldKeys | undefined {
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
  before: ToldKeys | undefined,
  after: ToldKeys | undefined,
): OutfitChange {
  const bitIf = (field: keyof ToldKeys, bit: number) =>
    before?.[field] === after?.[field] ? 0 : bit;
  const owner = (bit: number) => bitIf('userId', bit) | bitIf('private', bit);
  const changed =
    (before ?? after)?.likes === undefined
      ? aspects.others |
        owner(aspects.owner) |
        bitIf('created', aspects.created) |
        bitIf('modified', aspects.modified)
      : owner(aspects.likesOwner) | bitIf('likes', aspects.likes);
  return { id, before, after, aspects: changed };
}

export interface ListPart {
  /** Which aspects of outfits it depends on; a change of others is not asked about. */
  readonly aspects: number;
  /** Whether one change invalidates it. Changes are never netted: an answer may have been read between two of them. */
  readonly invalidates: (before: ToldKeys | undefined, after: ToldKeys | undefined) => boolean;
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
  readonly moment: number;
}

/** Keeps what was committed. Answers ask when they are wanted: a change costs the same however many there are. */
export class ChangeLog {
  /** The latest moment. */
  now = 0;
  /** What was read before this moment may have been changed by anything. */
  start = 0;
  #outfitChanges: Noted[] = [];
  /** When an outfit or a user was last seen to have changed. */
  readonly #outfits = new Map<number, number>();
  readonly #users = new Map<number, number>();
  #anyUser = 0;

  /** @param changes what was committed since the latest moment; undefined: nobody knows what */
  add(changes: Changes | undefined): void {
    this.now += 1;
    if (!changes) this.#forget(this.now);
    for (const change of changes?.outfits ?? []) {
      this.#outfitChanges.push({ ...change, moment: this.now });
      this.#outfits.set(change.id, this.now);
    }
    for (const id of changes?.users ?? []) {
      this.#users.set(id, this.now);
      this.#anyUser = this.now;
    }
    if (this.#outfitChanges.length > maxChanges || this.#users.size > maxChanges) {
      this.#forget(this.#outfitChanges.at(-maxChanges / 2)?.moment ?? this.now);
    }
  }

  /** Whether what was read may differ by now. @param since no later than the reading's begin, or when this was false */
  isInvalidated(dependencies: Dependencies | undefined, since: number): boolean {
    if (since === this.now) return false;
    if (since < this.start || !dependencies) return true;
    const { outfits = [], users = [], lists = [], anyUser = false } = dependencies;
    if (anyUser && this.#anyUser > since) return true;
    for (const id of outfits) if ((this.#outfits.get(id) ?? 0) > since) return true;
    for (const id of users) if ((this.#users.get(id) ?? 0) > since) return true;
    return lists.some((list) => this.#isListInvalidated(list, since));
  }

  #isListInvalidated({ aspects, invalidates }: ListPart, since: number): boolean {
    for (let index = this.#outfitChanges.length - 1; index >= 0; index--) {
      const change = this.#outfitChanges[index] as Noted;
      if (change.moment <= since) return false;
      if (change.aspects & aspects && invalidates(change.before, change.after)) return true;
    }
    return false;
  }

  #forget(until: number): void {
    this.start = until;
    this.#outfitChanges = this.#outfitChanges.filter(({ moment }) => moment > until);
    for (const moments of [this.#outfits, this.#users]) {
      for (const [id, moment] of moments) if (moment <= until) moments.delete(id);
    }
  }
}
