import { parseArgs } from 'node:util';

/**
 * @typedef {object} Options
 * @property {number} rows outfits in the large database
 * @property {number} seconds of a round
 * @property {number} pairs of rounds per comparison
 * @property {string[]} only parts of the names of the comparisons to run; empty: all
 * @property {boolean} tenMillion whether to compare a table of 10,000,000 too
 * @property {boolean} publish whether the result is that of the README: all comparisons, in full
 * @property {boolean} keep whether databases stay for the next run
 */

export const usage = `npm run bench -- [options]
  --rows N        outfits in the large database (1000000)
  --seconds N     length of a round (2)
  --pairs N       rounds of each side of a comparison (4)
  --only NAME     only comparisons with this in their name; may be repeated
  --ten-million   also compare a table of 10,000,000 outfits (several minutes more)
  --quick         smoke test: 20000 outfits, rounds of 0.5 s, 2 pairs
                  (with --quick or --only the result goes to bench/partial/)
  --keep          leave the databases on DATABASE_URL for the next run`;

/**
 * @param {string[]} args
 * @returns {Options}
 * @throws when an option is unknown or its value is not a number
 */
export function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      rows: { type: 'string' },
      seconds: { type: 'string' },
      pairs: { type: 'string' },
      only: { type: 'string', multiple: true },
      'ten-million': { type: 'boolean' },
      quick: { type: 'boolean' },
      keep: { type: 'boolean' },
    },
  });
  return {
    rows: readNumber('rows', values.rows, values.quick ? 20_000 : 1_000_000, 2000),
    seconds: readNumber('seconds', values.seconds, values.quick ? 0.5 : 2, 0.1),
    pairs: readNumber('pairs', values.pairs, values.quick ? 2 : 4, 1),
    only: values.only ?? [],
    tenMillion: values['ten-million'] ?? false,
    publish: !values.quick && values.only === undefined,
    keep: values.keep ?? false,
  };
}

/**
 * @param {string} name
 * @param {string | undefined} text
 * @param {number} whenAbsent
 * @param {number} least
 */
function readNumber(name, text, whenAbsent, least) {
  if (text === undefined) return whenAbsent;
  const number = Number(text.replaceAll('_', ''));
  if (number >= least) return number;
  throw new Error(`--${name} must be a number of at least ${least}, but it is ${text}.`);
}
