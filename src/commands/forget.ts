// outfit-gateway forget: erases a person from the database.
import { attachedMapping } from '../attach/attachment.ts';
import { readConfig } from '../config/config.ts';
import { wholeNumber } from '../config/values.ts';
import { OperatorError } from '../errors.ts';
import { applyPendingChanges } from '../outfits/counts.ts';
import { findUserData, forgetRest, forgetUser, type UserData } from '../outfits/writes/forget.ts';
import { formatNumber } from '../transfer/reporter.ts';
import { type Io, withDatabase } from './command.ts';
import { createLine, flag, required, type ValuesOf } from './options/command-line.ts';

const options = {
  user: required('--user <ID>', 'id of the user', wholeNumber(-2_147_483_648, 2_147_483_647)),
  yes: flag('--yes', 'erase it, after it was named'),
};

export const line = () =>
  createLine('forget', options)
    .description(
      'Erases a user from the database that DATABASE_URL or DATA_DIR names: outfits with all their likes, likes of other outfits, names, stored answers of repeatable requests, and rate limits.',
    )
    .addHelpText(
      'after',
      `
Erase the user in the old service first while it is imported or asked by AUTH_WEBHOOK_URL, which would
bring the user back. Pictures, logs, exports and backups are not reached.

Exit code: 0 nothing is left, 1 nothing was erased because --yes was missing, 2 it failed.`,
    );

export const failureCode = 2;

export async function run(
  { env, stdout }: Io,
  { user, yes }: ValuesOf<typeof options>,
): Promise<number> {
  return withDatabase(readConfig(env), async ({ pool }) => {
    const isAttached = yes && (await attachedMapping(pool)) !== undefined;
    const found =
      yes && !isAttached ? await forgetUser(pool, user) : await findUserData(pool, user);
    if (isAttached && found.username !== undefined) {
      throw new OperatorError(
        `User ${user} is erased in the old service, whose tables are attached, and is gone here then.`,
      );
    }
    if (isAttached) await forgetRest(pool, user);
    if (yes) await applyPendingChanges(pool);
    if (found.username === undefined && found.rateLimits === 0) {
      stdout.write(`There is nothing of user ${user}.\n`);
      return 0;
    }
    stdout.write(
      `${describe(user, found)} ${yes ? 'erased' : 'found; nothing is erased without --yes'}.\n`,
    );
    return yes ? 0 : 1;
  });
}

function describe(id: number, { username, outfits, likes, answers, rateLimits }: UserData): string {
  const numbers = { outfits, likes, 'stored answers': answers, 'rate limits': rateLimits };
  const parts = Object.entries(numbers).map(([name, number]) => `${formatNumber(number)} ${name}`);
  return `User ${id}${username === undefined ? '' : ` (${username})`}: ${parts.join(', ')}`;
}
