// Whether this gateway may write at all: never beside another owner of the data.
import type { Config } from '../config.ts';
import { legacyOwnsWrites, writesOff } from '../errors.ts';
import { canIdentify, type IdentityConfig } from './viewer.ts';

export type WriteConfig = Pick<Config, 'legacyMode' | 'writes'>;

/**
 * Refuses whatever would write.
 * @throws HttpError 503 while nobody may write, 403 while the old service owns the data
 */
export type GuardWrite = () => void;

export function createWriteGuard(config: WriteConfig): GuardWrite {
  const owner = findOtherOwner(config);
  return () => {
    if (owner === 'off') throw writesOff();
    if (owner === 'legacy') throw legacyOwnsWrites();
  };
}

/** Why nobody can write here: WRITES=off, the old service, or no way to sign in; undefined: somebody can. */
export function findWriteObstacle(
  config: IdentityConfig & WriteConfig,
): 'off' | 'legacy' | 'identity' | undefined {
  return findOtherOwner(config) ?? (canIdentify(config) ? undefined : 'identity');
}

function findOtherOwner({ legacyMode, writes }: WriteConfig): 'off' | 'legacy' | undefined {
  if (!writes) return 'off';
  return legacyMode.kind === 'shadow' || legacyMode.kind === 'canary' ? 'legacy' : undefined;
}
