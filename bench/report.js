// The results as a table, and as a file.

/** @typedef {import('./compare.js').Result} Result */

/**
 * @param {readonly Result[]} results
 * @returns {string}
 */
export function formatTable(results) {
  const header = [
    'What',
    'Against',
    'Ratio',
    'Least',
    'Most',
    'Target',
    '',
    'Other load',
    'Median of both',
  ];
  const lines = results.map(
    ({ name, against, ratio, target, met, otherLoad, subject, reference, unit }) => [
      name,
      against,
      formatNumber(ratio.median),
      formatNumber(ratio.min),
      formatNumber(ratio.max),
      formatTarget(target),
      met === undefined ? '' : met ? 'pass' : 'SHORT',
      `${Math.round(otherLoad * 100)}%${isNoisy({ otherLoad }) ? ' (!)' : ''}`,
      `${formatNumber(subject.median)} : ${formatNumber(reference.median)} ${unit}`,
    ],
  );
  const widths = header.map((_, column) =>
    Math.max(...[header, ...lines].map((line) => line[column]?.length ?? 0)),
  );
  const isNumber = new Set([2, 3, 4, 5, 7]);
  const format = (/** @type {string[]} */ line) =>
    `| ${line.map((cell, column) => (isNumber.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0))).join(' | ')} |`;
  const rule = `|${widths.map((width, column) => (isNumber.has(column) ? `${'-'.repeat(width + 1)}:` : '-'.repeat(width + 2))).join('|')}|`;
  return [format(header), rule, ...lines.map(format)].join('\n');
}

/** Whether something else took so much of the machine that the ratio says little. @param {Pick<Result, 'otherLoad'>} result */
export function isNoisy({ otherLoad }) {
  return otherLoad > 0.15;
}

/** @param {Result['target']} target */
function formatTarget(target) {
  if (!target) return '';
  return 'least' in target ? `>= ${target.least}` : `<= ${target.most}`;
}

/** Three digits that count. @param {number} value */
export function formatNumber(value) {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}
