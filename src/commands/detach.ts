// outfit-gateway detach: ends what attach began.
import { detach } from '../attach/attach.ts';
import { readConfig } from '../config/config.ts';
import { refuseEmbedded } from './attach.ts';
import { type Io, requireSession, withDatabase } from './command.ts';
import { createLine } from './options/command-line.ts';

export const line = () =>
  createLine('detach').description(
    'Takes out all that attach has made: triggers, functions and tables of its own. Users, outfits and likes stay, and may be written here from then on.',
  );

export async function run({ env, stdout }: Io): Promise<number> {
  const config = readConfig(env);
  refuseEmbedded(config.databaseUrl);
  requireSession(config);
  return withDatabase(config, async ({ pool, description }) => {
    const wasAttached = await detach(pool);
    stdout.write(`${description}: ${wasAttached ? 'detached' : 'nothing was attached'}.\n`);
    return 0;
  });
}
