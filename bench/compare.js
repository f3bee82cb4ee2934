// A comparison: two sides measured in turn, A B B A, and the ratio of each neighbouring pair.

import { loadSeconds, measureOtherLoad } from './machine.js';

/**
 * @typedef {object} Side
 * @property {string} name
 * @property {(seconds: number) => Promise<number>} measure one round; the value per its unit
 */

/**
 * @typedef {object} Comparison
 * @property {string} name
 * @property {string} against
 * @property {'requests/s' | 'ms' | 'µs' | 'likes/s' | 'bytes' | 'µs/like'} unit
 * @property {{ least: number } | { most: number } | undefined} target of the ratio
 * @property {Side} subject
 * @property {Side} reference
 * @property {() => Promise<void>} [prepare] runs before the first round
 * @property {() => Promise<void>} [finish] runs after the last round
 */

/** @typedef {{ readonly median: number, readonly min: number, readonly max: number }} Spread */

/**
 * @typedef {object} Result
 * @property {string} name
 * @property {string} against
 * @property {string} unit
 * @property {Comparison['target']} target
 * @property {Spread} ratio subject / reference, over the pairs
 * @property {{ name: string } & Spread} subject
 * @property {{ name: string } & Spread} reference
 * @property {number} otherLoad the most of the machine that was busy with something else
 * @property {boolean | undefined} met
 */

/** @param {number} seconds of a round */
const warmUpOf = (seconds) => Math.min(1, seconds);

/** Seconds that a comparison takes. @param {{ pairs: number, seconds: number }} amount */
export function secondsOf({ pairs, seconds }) {
  return 2 * warmUpOf(seconds) + pairs * (loadSeconds + 2 * seconds);
}

/**
 * @param {Comparison} comparison
 * @param {{ pairs: number, seconds: number }} amount
 * @param {(ratio: number) => void} onPair
 * @returns {Promise<Result>}
 */
export async function compare(comparison, { pairs, seconds }, onPair) {
  const { name, against, unit, target, subject, reference } = comparison;
  /** @type {{ subject: number, reference: number }[]} */
  const rounds = [];
  let otherLoad = 0;
  await comparison.prepare?.();
  const warmUp = warmUpOf(seconds);
  await subject.measure(warmUp);
  await reference.measure(warmUp);
  for (let pair = 0; pair < pairs; pair += 1) {
    otherLoad = Math.max(otherLoad, await measureOtherLoad());
    const subjectFirst = pair % 2 === 0;
    const first = await (subjectFirst ? subject : reference).measure(seconds);
    const second = await (subjectFirst ? reference : subject).measure(seconds);
    const round = subjectFirst
      ? { subject: first, reference: second }
      : { subject: second, reference: first };
    rounds.push(round);
    onPair(round.subject / round.reference);
  }
  await comparison.finish?.();
  const ratio = spread(rounds.map((round) => round.subject / round.reference));
  return {
    name,
    against,
    unit,
    target,
    ratio,
    otherLoad,
    subject: { name: subject.name, ...spread(rounds.map((round) => round.subject)) },
    reference: { name: reference.name, ...spread(rounds.map((round) => round.reference)) },
    met: isMet(ratio.median, target),
  };
}

/** @param {number} ratio @param {Comparison['target']} target */
function isMet(ratio, target) {
  if (!target) return undefined;
  return 'least' in target ? ratio >= target.least : ratio <= target.most;
}

/**
 * @param {readonly number[]} values
 * @returns {Spread}
 */
export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    median: medianOf(sorted),
    min: sorted[0] ?? Number.NaN,
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** @param {readonly number[]} sorted */
export function medianOf(sorted) {
  const middle = (sorted.length - 1) / 2;
  const low = sorted[Math.floor(middle)] ?? Number.NaN;
  const high = sorted[Math.ceil(middle)] ?? Number.NaN;
  return (low + high) / 2;
}
