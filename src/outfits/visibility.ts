// Who sees which private outfits.
import type { Config } from '../config.ts';
import type { Prisma } from '../generated/prisma/client.ts';

/** Which private outfits someone sees; public ones are seen by everyone. */
export type Visibility =
  | { readonly private: 'all' }
  | { readonly private: 'none' }
  /** Those of one user. */
  | { readonly private: 'own'; readonly userId: number };

/** The one rule of who sees what; the functions below say the same in other languages. */
export function visibilityFor(
  mode: Config['privateOutfits'],
  viewer: { readonly userId: number } | undefined,
): Visibility {
  if (mode === 'listed') return { private: 'all' };
  return viewer ? { private: 'own', userId: viewer.userId } : { private: 'none' };
}

/** In place of a user's id: everyone's outfits. No user has it. */
const everyone = 2_147_483_648;

/** Whose public and whose private outfits are in the visible list: the values of `givenMembers`. */
export function membersIn(visibility: Visibility): [publics: number, privates: number | null] {
  switch (visibility.private) {
    case 'all':
      return [everyone, everyone];
    case 'none':
      return [everyone, null];
    case 'own':
      return [everyone, visibility.userId];
  }
}

/** Whether what is seen is the same for others too. */
export function isShareable(visibility: Visibility): boolean {
  return visibility.private !== 'own';
}

/** What a visible outfit is, for Prisma. */
export function whereVisible(visibility: Visibility): Prisma.OutfitWhereInput {
  switch (visibility.private) {
    case 'all':
      return {};
    case 'none':
      return { private: false };
    case 'own':
      return { OR: [{ private: false }, { userId: visibility.userId }] };
  }
}

/**
 * What a visible one of the outfits `s` of one owner is, in SQL.
 * @param owner the owner's id
 * @param viewer placeholder of the value that `viewerValues` gives
 */
export function visibleOf(visibility: Visibility, owner: string, viewer: string): string {
  switch (visibility.private) {
    case 'all':
      return 'true';
    case 'none':
      return 'NOT s.private';
    case 'own':
      return `(NOT s.private OR ${owner} = ${viewer}::int)`;
  }
}

/** The values that a statement needs beside its other ones: the viewer's id, if it matters. */
export function viewerValues(visibility: Visibility): number[] {
  return visibility.private === 'own' ? [visibility.userId] : [];
}
