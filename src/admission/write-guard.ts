// Whether this gateway may write at all: never beside another owner of the data.
import type { Config } from '../config.ts';
import { legacyOwnsWrites, writesOff } from '../errors.ts';

export type WriteConfig = Pick<Config, 'legacyMode' | 'writes'>;

/**
 * Refuses whatever would write.
 * @throws HttpError 503 while nobody may write, 403 while the old service owns the data
 */
export type GuardWrite = () => void;

export function createWriteGuard({ legacyMode, writes }: WriteConfig): GuardWrite {
  const isLegacyOwner = legacyMode.kind === 'shadow' || legacyMode.kind === 'canary';
  return () => {
    if (!writes) throw writesOff();
    if (isLegacyOwner) throw legacyOwnsWrites();
  };
}
