// Whether anything can be written here, and with what, in a sentence for whoever is new.

import { findWriteObstacle, type WriteConfig } from '../admission/admission.ts';
import type { IdentityConfig } from '../admission/viewer.ts';
import { legacyOwnsWrites, writesOff } from '../errors.ts';

export interface Writing {
  readonly possible: boolean;
  readonly detail: string;
}

export function writingOf(config: IdentityConfig & WriteConfig): Writing {
  switch (findWriteObstacle(config)) {
    case 'off':
      return { possible: false, detail: writesOff().message };
    case 'legacy':
      return { possible: false, detail: legacyOwnsWrites().message };
    case 'identity':
      return { possible: false, detail: 'This service only reads: nobody can sign in here.' };
    case undefined:
      return {
        possible: true,
        detail: 'Writing needs a bearer token, in the header Authorization. Reading needs none.',
      };
  }
}
