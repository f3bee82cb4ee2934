// Visibility: which private outfits a viewer sees. Public outfits are visible to all.
import type { Config } from '../config/config.ts';

/** The visible private outfits: all, none, or those of one user. */
export type Visibility =
  | { readonly private: 'all' }
  | { readonly private: 'none' }
  | { readonly private: 'own'; readonly userId: number };

/** The rule of visibility. The functions below translate it to SQL. */
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

/** The placeholder of the viewer's id if visibility depends on it; otherwise empty. `add` creates placeholders. */
export function viewerOf(visibility: Visibility, add: (value: unknown) => string): string {
  return visibility.private === 'own' ? `${add(visibility.userId)}::int` : '';
}

/** SQL condition for a visible outfit `s`. @param viewer from `viewerOf` */
export function visibleOf(visibility: Visibility, viewer: string, owner = 's.user_id'): string {
  if (visibility.private === 'all') return 'true';
  return visibility.private === 'none'
    ? 'NOT s.private'
    : `(NOT s.private OR ${owner} = ${viewer})`;
}

/** Conditions of the index ranges that are merged into the visible list. Indexes begin with `private` or the user. */
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
