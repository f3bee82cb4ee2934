import type { Config } from '../config.ts';

/** Which private outfits someone sees; public ones are seen by everyone. */
export type Visibility =
  | { readonly private: 'all' }
  | { readonly private: 'none' }
  /** Those of one user. */
  | { readonly private: 'own'; readonly userId: number };

/** The one rule of who sees what. */
export function visibilityFor(
  mode: Config['privateOutfits'],
  viewer: { readonly userId: number } | undefined,
): Visibility {
  if (mode === 'listed') return { private: 'all' };
  return viewer ? { private: 'own', userId: viewer.userId } : { private: 'none' };
}

/** Whether an outfit is among those that are seen. */
export function isVisible(
  outfit: { readonly private: boolean; readonly userId: number },
  visibility: Visibility,
): boolean {
  if (!outfit.private || visibility.private === 'all') return true;
  return visibility.private === 'own' && outfit.userId === visibility.userId;
}
