// What the command line says. Nothing is imported that has to be installed: the help and a wrong option come first.
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
 * @property {boolean} help whether to print the usage and end
 */

export const usage = `npm run bench -- [options]

Measures the gateway beside other systems that give the same answers, in turn and on one PostgreSQL, and prints the
ratios with their targets. It takes seven to eight minutes on two cores; each run says at its start what it will take.

  --rows N        outfits in the large database (1000000); a minute and a quarter to make for a million
  --seconds N     length of a round (1)
  --pairs N       rounds of each side of a comparison (4)
  --only NAME     only comparisons with this in their name; may be repeated. A minute and a half, and 11 s for each
  --ten-million   also compare a table of 10,000,000 outfits (a quarter of an hour more, 20 GB of disk)
  --quick         smoke test: 20000 outfits, rounds of 0.5 s, 2 pairs. Two minutes; its ratios mean nothing
  --keep          leave the databases on DATABASE_URL for the next run, which then need not make them
  --help          print this

DATABASE_URL      a server to use, on which nothing else writes; its own if it is not set

The result is written to bench/result.json and result.svg; with --quick or --only to bench/partial/.`;

/**
 * @param {string[]} args
 * @returns {Options}
 * @throws UsageError when an option is unknown or its value is not a number
 */
export function readOptions(args) {
  const values = parse(args);
  return {
    rows: readNumber('rows', values.rows, values.quick ? 20_000 : 1_000_000, 2000),
    seconds: readNumber('seconds', values.seconds, values.quick ? 0.5 : 1, 0.1),
    pairs: readNumber('pairs', values.pairs, values.quick ? 2 : 4, 1),
    only: values.only ?? [],
    tenMillion: values['ten-million'] ?? false,
    publish: !values.quick && values.only === undefined,
    keep: values.keep ?? false,
    help: values.help ?? false,
  };
}

/** The command line is wrong; the message is the sentence for who typed it. */
export class UsageError extends Error {}

/** @param {string[]} args */
function parse(args) {
  try {
    return parseArgs({
      args,
      options: {
        rows: { type: 'string' },
        seconds: { type: 'string' },
        pairs: { type: 'string' },
        only: { type: 'string', multiple: true },
        'ten-million': { type: 'boolean' },
        quick: { type: 'boolean' },
        keep: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    // Node.js goes on with advice about positional arguments, of which there are none.
    throw new UsageError(`${String(/** @type {Error} */ (error).message).split('. ')[0]}.`);
  }
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
  throw new UsageError(`--${name} must be a number of at least ${least}, but it is ${text}.`);
}
