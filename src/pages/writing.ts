// Whether anything can be written here, and with what, in a sentence for whoever is new.
import { canIdentify, type IdentityConfig } from '../admission/viewer.ts';
import { createWriteGuard, type WriteConfig } from '../admission/write-guard.ts';
import { HttpError } from '../errors.ts';

export interface Writing {
  readonly possible: boolean;
  readonly detail: string;
}

export function writingOf(config: IdentityConfig & WriteConfig): Writing {
  try {
    createWriteGuard(config)();
  } catch (error) {
    if (error instanceof HttpError) return { possible: false, detail: error.message };
    throw error;
  }
  return canIdentify(config)
    ? {
        possible: true,
        detail: 'Writing needs a bearer token, in the header Authorization. Reading needs none.',
      }
    : { possible: false, detail: 'This service only reads: nobody can sign in here.' };
}
