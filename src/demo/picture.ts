// Draws the demonstration's pictures as SVG, from nothing but their keys: outfits, avatars, and a still of
// each video.
import { createHash } from 'node:crypto';
import { drawFace } from './face.ts';
import {
  bags,
  boots,
  bottoms,
  dresses,
  extras,
  type Garment,
  jackets,
  shoes,
  tops,
} from './garments.ts';
import { at, below, createRandom, pick, type Random } from './random.ts';

/** A background, and colours for clothes that go with it and with each other. */
type Palette = readonly [background: string, ...clothes: string[]];

const palettes: readonly Palette[] = [
  ['#f1e7da', '#c39a74', '#4a3f37', '#8a5a3c', '#faf5ee'],
  ['#dfe8f0', '#22395b', '#f6f2ea', '#b5533c', '#8fa9c4'],
  ['#f9e3e0', '#d98c8f', '#5f4353', '#fbf1ea', '#a94a73'],
  ['#e2ebdf', '#7f9c7a', '#43523f', '#d9c49c', '#f7f2e6'],
  ['#f7eac2', '#d29a1f', '#34495e', '#7b3f2a', '#fbf3df'],
  ['#e6e6e6', '#2b2b2e', '#7b7b80', '#fafafa', '#b9b9be'],
  ['#e1ebf3', '#5b7fa6', '#2f4766', '#f4ebdd', '#c96f4a'],
  ['#f4dfd3', '#bd5f38', '#3d3a37', '#f0d9bf', '#74825f'],
  ['#e9e1f3', '#9a80c2', '#453a69', '#f7dfe8', '#fbf8ff'],
  ['#d6ebe8', '#2f7f79', '#f6f1e7', '#23403f', '#e0965a'],
  ['#f8dfe2', '#a91e3a', '#2d2a32', '#f8f1ea', '#dd8d99'],
  ['#ebebd3', '#74793a', '#3b3a2a', '#c9a66b', '#f5f0de'],
  ['#d9edf8', '#6aabd4', '#faf6ee', '#345573', '#efc04f'],
  ['#f0e6d8', '#b8874f', '#1f1f22', '#f7f0e6', '#7a2e2e'],
  ['#dcede2', '#1f7a55', '#f7f2e4', '#2c2f2d', '#cfa64c'],
  ['#fde7dd', '#ee7d5b', '#fffaf3', '#4f928b', '#f2b950'],
];

/** Numbers from the key alone, so that a picture is the same on every machine. */
function randomOf(key: string): Random {
  const digest = createHash('sha256').update(key).digest();
  return createRandom(digest.readInt32LE(0), digest.readInt32LE(4), digest.readInt32LE(8));
}

/** @param key of an image, a video or an avatar, as it is stored */
export function drawPicture(key: string): string {
  const random = randomOf(key);
  if (key.startsWith('avatars/')) return drawFace(random, pick(palettes, random));
  return drawOutfit(random, key.startsWith('outfits_videos/') ? playMark : '');
}

const playMark =
  '<circle cx="150" cy="200" r="38" fill="#1c1c20" opacity=".72"/><path d="M138 180V220L172 200Z" fill="#fff"/>';

function drawOutfit(random: Random, mark: string): string {
  const [background, ...clothes] = pick(palettes, random);
  const order = below(random, clothes.length);
  const colors = clothes.map((_color, index) => at(clothes, index + order));
  const pattern = drawPattern(random, at(colors, 0), at(colors, 3));
  const pieces = pick(
    layouts,
    random,
  )(random)
    .map((piece, index) => drawPiece(piece, colors, index === 0 && pattern !== ''))
    .join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="600" height="800" viewBox="0 0 300 400"><defs><filter id="s" x="-20%" y="-20%" width="140%" height="140%"><feDropShadow dx="2" dy="4" stdDeviation="4" flood-color="#3a2c20" flood-opacity=".28"/></filter>${pattern}</defs><path d="M0 0H300V400H0Z" fill="${background}"/><path d="${pick(backdrops, random)}" fill="#fff" opacity=".42"/>${pieces}${mark}</svg>`;
}

/** Shapes behind the clothes. */
const backdrops = [
  'M150 200m-130 0a130 130 0 1 0 260 0a130 130 0 1 0-260 0Z',
  'M45 400V150A105 105 0 0 1 255 150V400Z',
  'M0 400V250Q90 190 160 240T300 180V400Z',
  'M300 0V400H150Q250 210 120 0Z',
  'M24 24H276V376H24Z',
  'M30 120Q60 20 170 40T280 190 190 370 40 300 30 120Z',
];

interface Piece {
  readonly garment: Garment;
  readonly x: number;
  readonly y: number;
  readonly turn: number;
  readonly size: number;
  /** Its place among the colours of the picture; that of its trim is the next one. */
  readonly color: number;
  /** Shoes come in pairs: the other one lies behind. */
  readonly isPair?: boolean;
}

/** Where the clothes of a picture lie; the first one has the pattern. */
const layouts: readonly ((random: Random) => Piece[])[] = [
  // One above the other.
  (random) => [
    place(pick(tops, random), 150, 58, tilt(random, 3), 1.12, 0),
    place(pick(bottoms, random), 150, 196, tilt(random, 3), 1.06, 1),
    place(pick(bags, random), 48, 250, tilt(random, 10), 0.95, 3),
    pair(pick(shoes, random), 248, 344, 1.1, 2),
    place(pick(extras, random), 250, 236, tilt(random, 14), 0.85, 2),
  ],
  // Side by side.
  (random) => [
    place(pick(tops, random), 98, 62, -6 + tilt(random, 3), 1.14, 0),
    place(pick(bottoms, random), 210, 150, 6 + tilt(random, 3), 1.1, 1),
    pair(pick(shoes, random), 76, 348, 1.15, 2),
    place(pick(bags, random), 72, 250, tilt(random, 8), 0.9, 3),
    place(pick(extras, random), 226, 84, tilt(random, 14), 0.95, 2),
  ],
  // A dress.
  (random) => [
    place(pick(dresses, random), 142, 56, tilt(random, 3), 1.2, 0),
    place(pick(bags, random), 252, 190, tilt(random, 10), 1, 1),
    pair(pick([...shoes, ...boots], random), 248, 346, 1.1, 2),
    place(pick(extras, random), 50, 84, tilt(random, 14), 0.9, 3),
  ],
  // A jacket over a top, and what goes with it.
  (random) => [
    place(pick(bottoms, random), 216, 150, 5 + tilt(random, 3), 1.08, 1),
    place(pick(jackets, random), 100, 60, -4 + tilt(random, 3), 1.14, 0),
    pair(pick([...shoes, ...boots], random), 78, 352, 1.1, 2),
    place(pick(extras, random), 224, 84, tilt(random, 14), 0.95, 3),
  ],
];

function place(
  garment: Garment,
  x: number,
  y: number,
  turn: number,
  size: number,
  color: number,
): Piece {
  return { garment, x, y, turn, size, color };
}

function pair(garment: Garment, x: number, y: number, size: number, color: number): Piece {
  return { garment, x, y, turn: 0, size, color, isPair: true };
}

/** Whole degrees, to either side. */
function tilt(random: Random, most: number): number {
  return below(random, 2 * most + 1) - most;
}

function drawPiece(
  { garment, x, y, turn, size, color, isPair }: Piece,
  colors: readonly string[],
  isPatterned: boolean,
): string {
  const { outline, straps, trim, lines, buttons } = garment;
  const fill = at(colors, color);
  const line = isDark(fill) ? '#fff' : '#000';
  const shapes = [
    straps ? `<path d="${straps}" fill="none" stroke="${fill}" stroke-width="3.4"/>` : '',
    `<path d="${outline}" fill="${isPatterned ? 'url(#p)' : fill}" stroke="#000" stroke-opacity=".2"/>`,
    trim
      ? `<path d="${trim}" fill="${at(colors, color + 1)}" stroke="#000" stroke-opacity=".2"/>`
      : '',
    lines ? `<path d="${lines}" fill="none" stroke="${line}" stroke-opacity=".4"/>` : '',
    buttons
      ? `<path d="${buttons}" stroke="${line}" stroke-opacity=".65" stroke-width="3.4" stroke-linecap="round"/>`
      : '',
  ].join('');
  const transform = `translate(${x} ${y})${turn ? ` rotate(${turn})` : ''} scale(${size})`;
  if (!isPair) return `<g filter="url(#s)" transform="${transform}">${shapes}</g>`;
  return `<g filter="url(#s)" transform="${transform}"><g id="f">${shapes}</g><use href="#f" x="-8" y="18"/></g>`;
}

/** Whether a colour is darker than most, as the eye sees it. */
function isDark(color: string): boolean {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) =>
    Number.parseInt(color.slice(start, start + 2), 16),
  );
  return 0.3 * red + 0.59 * green + 0.11 * blue < 110;
}

/** What half of the clothes are printed or woven with; empty for the other half. */
function drawPattern(random: Random, ground: string, figure: string): string {
  if (below(random, 2) === 0) return '';
  const { size, paths, opacity } = pick(patterns, random);
  const figures = paths.map((path) => `<path d="${path}" fill="${figure}" opacity="${opacity}"/>`);
  return `<pattern id="p" width="${size}" height="${size}" patternUnits="userSpaceOnUse"><path d="M0 0H${size}V${size}H0Z" fill="${ground}"/>${figures.join('')}</pattern>`;
}

const patterns = [
  // Stripes across
  { size: 14, paths: ['M0 0H14V5H0Z'], opacity: 0.85 },
  // Pin stripes
  { size: 9, paths: ['M0 0H1.4V9H0Z'], opacity: 0.7 },
  // Dots
  {
    size: 16,
    paths: ['M2 4a2 2 0 1 1 4 0a2 2 0 1 1-4 0M10 12a2 2 0 1 1 4 0a2 2 0 1 1-4 0'],
    opacity: 0.9,
  },
  // Gingham
  { size: 18, paths: ['M0 0H9V18H0Z', 'M0 0H18V9H0Z'], opacity: 0.45 },
  // Tartan
  {
    size: 28,
    paths: ['M0 0H10V28H0ZM18 0H20V28H18Z', 'M0 0H28V10H0ZM0 18H28V20H0Z'],
    opacity: 0.42,
  },
  // Flowers
  {
    size: 20,
    paths: [
      'M4.3 3.4a1.7 1.7 0 1 1 3.4 0a1.7 1.7 0 1 1-3.4 0M6.9 5.2a1.7 1.7 0 1 1 3.4 0a1.7 1.7 0 1 1-3.4 0M5.9 8.2a1.7 1.7 0 1 1 3.4 0a1.7 1.7 0 1 1-3.4 0M2.7 8.2a1.7 1.7 0 1 1 3.4 0a1.7 1.7 0 1 1-3.4 0M1.7 5.2a1.7 1.7 0 1 1 3.4 0a1.7 1.7 0 1 1-3.4 0M14.4 16a1.6 1.6 0 1 1 3.2 0a1.6 1.6 0 1 1-3.2 0',
    ],
    opacity: 0.85,
  },
];
