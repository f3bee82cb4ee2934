// Who sees which private outfits.
import type { Config } from '../config.ts';
import type { Prisma } from '../generated/prisma/client.ts';

/** Which private outfits someone sees; public ones are seen by everyone. */
export type Visibility =
  | { readonly private: 'all' }
  | { readonly private: 'none' }
  | { readonly private: 'own'; readonly userId: number };

/** The one rule of who sees what; the functions below say the same in other languages. */
export function visibilityFor(
  mode: Config['privateOutfits'],
  viewer: { readonly userId: number } | undefined,
): Visibility {
  if (mode === 'listed') return { private: 'all' };
  return viewer ? { private: 'own', userId: viewer.userId } : { private: 'none' };
}

export function isShareable(visibility: Visibility): boolean {
  return visibility.private !== 'own';
}

export function whereVisible(visibility: Visibility): Prisma.OutfitWhereInput {
  if (visibility.private === 'all') return {};
  const isPublic = { private: false };
  return visibility.private === 'none'
    ? isPublic
    : { OR: [isPublic, { userId: visibility.userId }] };
}

/** The placeholder of the viewer's id, if it matters to what is visible; `add` gives one to a value. */
export function viewerOf(visibility: Visibility, add: (value: unknown) => string): string {
  return visibility.private === 'own' ? `${add(visibility.userId)}::int` : '';
}

/** What a visible one of the outfits `s` is, in SQL; with the viewer as `viewerOf` gives it. */
export function visibleOf(visibility: Visibility, viewer: string, owner = 's.user_id'): string {
  if (visibility.private === 'all') return 'true';
  return visibility.private === 'none'
    ? 'NOT s.private'
    : `(NOT s.private OR ${owner} = ${viewer})`;
}

/** Conditions whose merge is the visible list, each one index range: they lead with `private`, or user and it. */
export function segmentsOf(
  visibility: Visibility,
  viewer: string,
  s: string,
  owner: string | undefined,
): string[] {
  const ofOwner = owner ? `${s}.user_id = ${owner} AND ` : '';
  const publics = `${ofOwner}NOT ${s}.private`;
  if (visibility.private === 'all') return [publics, `${ofOwner}${s}.private`];
  if (visibility.private === 'none') return [publics];
  const own = `${s}.user_id = ${viewer} AND ${s}.private`;
  return [publics, owner ? `${own} AND ${owner} = ${viewer}` : own];
}

/** In place of a user's id: everyone's outfits. No user has it. */
const everyone = '2147483648::bigint';

/** The same as the functions of the counts take it: whose public and whose private outfits are listed. */
export function membersOf(
  visibility: Visibility,
  viewer: string,
  owner: string | undefined,
): string {
  const publics = owner ? `${owner}::bigint` : everyone;
  if (visibility.private === 'all') return `${publics}, ${publics}`;
  if (visibility.private === 'none') return `${publics}, NULL::bigint`;
  return owner
    ? `${publics}, CASE WHEN ${owner} = ${viewer} THEN ${publics} END`
    : `${publics}, ${viewer}::bigint`;
}
