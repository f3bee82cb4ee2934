// What an import tells whoever ran it, line by line.
import type { Config } from '../config.ts';
import type { Crawl } from './crawl.ts';
import { formatNumber } from './reporter.ts';
import { describeUnkept } from './unkept.ts';

export interface OutcomeOptions {
  readonly config: Pick<Config, 'mediaUrl' | 'videoUrl'>;
  readonly canResume: boolean;
  /** Outfits that were pruned; undefined: that was not asked for. */
  readonly removed: number | undefined;
  /** The option that removes what the source does not have. */
  readonly remover: '--prune' | '--replace';
}

/** The first line says what changed; the others, what is to be done. */
export function describeOutcome(crawl: Crawl, options: OutcomeOptions): string[] {
  const { config, canResume, removed, remover } = options;
  const { totals, bases, seconds, already, foreign, lacking, interrupted } = crawl;
  const [read, created, updated, unchanged, broken] = [
    totals.read,
    totals.created,
    totals.updated,
    totals.unchanged,
    totals.broken,
  ].map(formatNumber);
  const rate = formatNumber((totals.read - already) / seconds);
  const pruned = removed === undefined ? '' : `${formatNumber(removed)} removed, `;
  const lines = [
    `${read} records read in ${seconds.toFixed(1)} s (${rate} per second): ${created} created, ${updated} updated, ${unchanged} unchanged, ${pruned}${broken} broken.`,
  ];
  if (already > 0) {
    lines.push(`${formatNumber(already)} of them were read by the interrupted import.`);
  }
  if (interrupted) {
    const next = canResume ? ' The same command goes on from there; --restart begins anew.' : '';
    lines.push(`Interrupted; what was read is saved.${next}`);
  }
  const settings = [
    bases.media !== undefined && bases.media !== config.mediaUrl && `MEDIA_URL=${bases.media}`,
    bases.video !== undefined && bases.video !== config.videoUrl && `VIDEO_URL=${bases.video}`,
  ].filter((setting) => setting !== false);
  if (settings.length > 0) {
    lines.push(`To serve the URLs of the source, set ${settings.join(' and ')}.`);
  }
  const lost = describeUnkept(crawl.unkept);
  if (lost) lines.push(lost);
  if (foreign && foreign.size > 0 && removed === undefined) {
    lines.push(
      `The database holds ${formatNumber(foreign.size)} more outfits that are not in this source; ${remover} removes them.`,
    );
  }
  if (lacking) {
    lines.push(
      `The listing counts ${formatNumber(lacking)} more outfits than came: it changed while it was read, so import it once more.`,
    );
  }
  return lines;
}
