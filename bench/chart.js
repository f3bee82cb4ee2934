// The chart for the README: bars of what was measured, on a light ground.
import { formatNumber } from './report.js';

/** @typedef {import('./compare.js').Result} Result */
/** @typedef {{ readonly name: string, readonly value: number, readonly isOurs: boolean }} Bar */

const width = 900;
const labelWidth = 420;
const barWidth = 380;
const lineHeight = 24;

const panels = /** @type {const} */ ([
  {
    unit: 'requests/s',
    title: 'Requests per second, 32 connections unless named (more is better)',
  },
  { unit: 'ms', title: 'Median latency in ms, cache off, one connection (less is better)' },
  {
    unit: 'µs',
    title: 'Processor time per request in µs, database included, 128 connections (less is better)',
  },
  { unit: 'likes/s', title: 'Likes per second, 8 clients (more is better)' },
  { unit: 'bytes', title: 'Log of a like in bytes (less is better)' },
  { unit: 'µs/like', title: 'Time of a like in the database in µs, one session (less is better)' },
]);

/**
 * @param {string} title
 * @param {readonly Result[]} results
 * @returns {string} an SVG document
 */
export function drawChart(title, results) {
  /** @type {string[]} */
  const parts = [text(20, 34, title, 'title')];
  let y = 50;
  for (const panel of panels) {
    const bars = listBars(results, panel.unit);
    if (bars.length === 0) continue;
    parts.push(text(20, y + 26, panel.title, 'panel'));
    y += 38;
    const most = Math.max(...bars.map((bar) => bar.value));
    for (const bar of bars) {
      parts.push(...drawBar(bar, y, most));
      y += lineHeight;
    }
    y += 8;
  }
  const height = y + 12;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(title)}">
<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-size: 17px; font-weight: 600; }
.panel { font-weight: 600; }
.name { text-anchor: end; }
.ours { fill: #1f6feb; }
.other { fill: #afb8c1; }
</style>
<rect width="${width}" height="${height}" fill="#ffffff"/>
${parts.join('\n')}
</svg>
`;
}

/**
 * Every side once, in the order of the comparisons.
 * @param {readonly Result[]} results
 * @param {Result['unit']} unit
 * @returns {Bar[]}
 */
function listBars(results, unit) {
  /** @type {Map<string, Bar>} */
  const bars = new Map();
  for (const { subject, reference } of results.filter((result) => result.unit === unit)) {
    // What is compared with is shown above what is ours.
    for (const side of [reference, subject]) {
      if (bars.has(side.name)) continue;
      const isOurs = !/memory|hand-written|Mercurius|triggers off|as before/.test(side.name);
      bars.set(side.name, { name: side.name, value: side.median, isOurs });
    }
  }
  return [...bars.values()];
}

/**
 * @param {Bar} bar
 * @param {number} y
 * @param {number} most
 */
function drawBar({ name, value, isOurs }, y, most) {
  const length = Math.max(1, (value / most) * barWidth).toFixed(1);
  const x = labelWidth + 12;
  return [
    text(labelWidth, y + 16, name, 'name'),
    `<rect class="${isOurs ? 'ours' : 'other'}" x="${x}" y="${y + 3}" width="${length}" height="${lineHeight - 6}" rx="2"/>`,
    text(x + Number(length) + 6, y + 16, formatNumber(value), 'value'),
  ];
}

/** @param {number} x @param {number} y @param {string} content @param {string} kind */
function text(x, y, content, kind) {
  return `<text class="${kind}" x="${x}" y="${y}">${escapeXml(content)}</text>`;
}

/** @param {string} content */
function escapeXml(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
