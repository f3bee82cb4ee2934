// Visibility: which private outfits a viewer sees. Public outfits are visible to all.
import type { Config } from '../config/config.ts';

/** The visible private outfits: all, none, or those of one user. */
export type Visibility =
  | { readonly private: 'all' }
  | { readonly private: 'none' }
  | { readonly private: 'own'; readonly userId: number };

/** The rule of visibility. */
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

/** The rule for an outfit `s` in SQL, with the values of `sightOf`. */
export const isVisible = '(NOT s.private OR :all::boolean OR s.user_id = :viewer::int)';

/** `all`: whether all private outfits are visible. `viewer`: the user whose own ones are; null: nobody. */
export function sightOf(visibility: Visibility) {
  return {
    all: visibility.private === 'all',
    viewer: visibility.private === 'own' ? visibility.userId : null,
  };
}
