// import --likes and --users: rows beside the outfits, upserted in batches. Running it again changes nothing.
import { applyPendingChanges } from '../../outfits/counts.ts';
import { raiseSequences, readMoment, saveUsers } from '../../outfits/writes/bulk.ts';
import {
  compareLikes,
  type LikeDifference,
  removeOlderLikes,
  saveLikes,
} from '../../outfits/writes/likes.ts';
import { formatNumber, listFirst } from '../reporter.ts';
import { checkLike, checkUser } from '../source/record.ts';
import type { SourceBatch } from '../source/source.ts';
import { Run, type RunOptions, type RunOutcome } from './run.ts';

export class PeopleImport extends Run<RunOptions & { readonly kind: 'likes' | 'users' }> {
  /** In a dry run, which saves no rows: ids of the records so far, to find repeated ones. Second ids by first. */
  readonly #seen = new Map<number, Set<number>>();
  #lacksUsers = false;
  /** Likes of outfits and users that the database does not have. */
  #strangers = 0;

  /** @throws SourceError when the source fails; the batches before are saved */
  async run(): Promise<RunOutcome> {
    const { kind, replace, isDry } = this.options;
    const moment = await readMoment(this.pool);
    await this.readAll(
      undefined,
      async () => {},
      (batch) => (kind === 'likes' ? this.#saveLikes(batch) : this.#saveUsers(batch)),
    );
    const { read, broken, ...saved } = this.totals;
    const kept = Object.entries({ ...saved, broken });
    const lines = this.summarize(
      kind,
      kept.map(([name, number]) => `${formatNumber(number)} ${name}`),
    );
    if (this.isInterrupted) return this.conclude(kind, lines, 0, false);
    const isBroken = broken > this.#strangers && 'some records were broken';
    const count = this.count ?? 0;
    const partial = this.reasonAgainstRemoval(this.shortened ?? isBroken, count, read);
    const isRefused = replace && partial !== undefined;
    if (isRefused) lines.push(`Nothing is removed, because ${partial}.`);
    else if (replace && !isDry) {
      const removed = await removeOlderLikes(this.pool, moment);
      lines.push(`Removed, because the source does not have them: ${formatNumber(removed)} likes.`);
    }
    const differing = await this.#finish(lines);
    return this.conclude(kind, lines, count - read, isRefused || differing);
  }

  async #saveLikes(batch: SourceBatch): Promise<void> {
    const rows = this.check(batch, checkLike, () => 'Like');
    const unseen = rows.filter(({ row }) => this.#isNew(row.outfit, row.user));
    const likes = unseen.map(({ row }) => row);
    const { replace, isDry } = this.options;
    const saved = await saveLikes(this.pool, likes, { renew: replace, isDry });
    this.add(saved);
    this.totals.unchanged += rows.length - unseen.length;
    const { outfits, users } = saved.missing;
    for (const { row, where } of outfits.size + users.size > 0 ? unseen : []) {
      const { outfit, user } = row;
      const missing = outfits.has(outfit) ? `outfit ${outfit}` : users.has(user) && `user ${user}`;
      if (!missing) continue;
      this.#lacksUsers ||= !outfits.has(outfit);
      this.totals.broken++;
      this.#strangers++;
      this.reporter.fault(`Like (${where}): there is no ${missing}`, `no ${missing}`);
    }
  }

  async #saveUsers(batch: SourceBatch): Promise<void> {
    const rows = this.check(batch, checkUser, () => 'User');
    const unseen = rows.filter(({ row }) => this.#isNew(row.id, 0)).map(({ row }) => row);
    this.add(await saveUsers(this.pool, unseen, this.options.isDry));
    this.totals.unchanged += rows.length - unseen.length;
  }

  #isNew(first: number, second: number): boolean {
    if (!this.options.isDry) return true;
    const seconds = this.#seen.get(first) ?? new Set();
    this.#seen.set(first, seconds);
    return seconds.size < seconds.add(second).size;
  }

  /** @returns whether numbers of likes differ from their rows */
  async #finish(lines: string[]): Promise<boolean> {
    const { pool } = this;
    const { kind, isDry } = this.options;
    const { created, updated } = this.totals;
    if (this.#lacksUsers) lines.push('Users without outfits come with --users: import them first.');
    if (isDry) return false;
    if (created + updated > 0) {
      await raiseSequences(pool);
      await applyPendingChanges(pool);
      await pool.query('ANALYZE users, outfit_likes');
    }
    if (kind !== 'likes') return false;
    const { above, below } = await compareLikes(pool);
    const isSame = above.outfits + below.outfits === 0;
    if (isSame) lines.push('All numbers of likes agree with their rows.');
    lines.push(
      ...describe(above, 'above their rows; who gave these likes did not come'),
      ...describe(below, 'below their rows; import the outfits, then the likes with --replace'),
    );
    return !isSame;
  }
}

function describe({ outfits, likes, first }: LikeDifference, what: string): string[] {
  if (outfits === 0) return [];
  const name = `${formatNumber(outfits)} outfit${outfits === 1 ? '' : 's'} (${listFirst(first, outfits, 3)})`;
  return [`${name}: the number of likes is ${formatNumber(likes)} ${what}.`];
}
