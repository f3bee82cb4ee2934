// Draws pictures of the demonstration set as SVG: outfits and avatars.
import { readFileSync } from 'node:fs';
import { at, below, pick, type Random } from './random.ts';

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

/** The gateway replaces the 0 of its last filter by a hue. */
export function drawOutfit(random: Random): string {
  const [background, ...clothes] = pick(palettes, random);
  const order = below(random, clothes.length);
  const colors = clothes.map((_color, index) => at(clothes, index + order));
  const pattern = drawPattern(random, at(colors, 0), at(colors, 3));
  const pieces = pick(shapesOf<Layout>('layouts'), random)
    .places.map((place, index) => drawPiece(place, colors, index === 0 && pattern !== '', random))
    .join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="600" height="800" viewBox="0 0 300 400"><defs><filter id="s" x="-20%" y="-20%" width="140%" height="140%"><feDropShadow dx="2" dy="4" stdDeviation="4" flood-color="#3a2c20" flood-opacity=".28"/></filter>${pattern}<filter id="h" x="0" y="0" width="100%" height="100%" color-interpolation-filters="sRGB"><feColorMatrix type="hueRotate" values="0"/></filter></defs><g filter="url(#h)"><path d="M0 0H300V400H0Z" fill="${background}"/><path d="${pick(backdrops, random)}" fill="#fff" opacity=".42"/>${pieces}</g></svg>`;
}

const backdrops = [
  'M150 200m-130 0a130 130 0 1 0 260 0a130 130 0 1 0-260 0Z',
  'M45 400V150A105 105 0 0 1 255 150V400Z',
  'M0 400V250Q90 190 160 240T300 180V400Z',
  'M300 0V400H150Q250 210 120 0Z',
  'M24 24H276V376H24Z',
  'M30 120Q60 20 170 40T280 190 190 370 40 300 30 120Z',
];

/** Paths of a garment. The origin is at the neck or the waist; shoes stand on it. */
interface Garment {
  readonly outline: string;
  /** Parts in a second colour: collars, soles, bands. */
  readonly trim?: string;
  /** Straps and handles, in the colour of the piece. */
  readonly straps?: string;
  /** Seams and folds. */
  readonly lines?: string;
  /** Round buttons: each a path of no length. */
  readonly buttons?: string;
}

/** Patterns of half of the clothes. */
interface Pattern {
  readonly size: number;
  readonly paths: readonly string[];
  readonly opacity: number;
}

interface Hair {
  readonly name: string;
  /** Behind the head, and in front of it. */
  readonly behind: string;
  readonly front: string;
}

let shapes: readonly { readonly kind: string }[] | undefined;

/** Shapes of a kind, read on first use. */
function shapesOf<Shape = Garment>(kinds: string): Shape[] {
  shapes ??= readFileSync(new URL('shapes.ndjson', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return shapes.filter(({ kind }) => kinds.split(' ').includes(kind)) as unknown as Shape[];
}

/**
 * Position of a garment of one of `kinds`. `color` is an index into the colours of the picture; the trim has the next
 * one. `turn` is in degrees, varied by `tilt`. Shoes have none: they are drawn in pairs, one behind the other.
 */
type Place = readonly [
  kinds: string,
  x: number,
  y: number,
  size: number,
  color: number,
  turn?: number,
  tilt?: number,
];

/** The first garment has the pattern. */
interface Layout {
  readonly places: readonly Place[];
}

function drawPiece(
  [kinds, x, y, size, color, turn = 0, tilt]: Place,
  colors: readonly string[],
  isPatterned: boolean,
  random: Random,
): string {
  const { outline, straps, trim, lines, buttons } = pick(shapesOf(kinds), random);
  const angle = tilt === undefined ? 0 : turn + below(random, 2 * tilt + 1) - tilt;
  const fill = at(colors, color);
  const line = isDark(fill) ? '#fff' : '#000';
  const shapes = [
    straps && `<path d="${straps}" fill="none" stroke="${fill}" stroke-width="3.4"/>`,
    `<path d="${outline}" fill="${isPatterned ? 'url(#p)' : fill}" stroke="#000" stroke-opacity=".2"/>`,
    trim && `<path d="${trim}" fill="${at(colors, color + 1)}" stroke="#000" stroke-opacity=".2"/>`,
    lines && `<path d="${lines}" fill="none" stroke="${line}" stroke-opacity=".4"/>`,
    buttons &&
      `<path d="${buttons}" stroke="${line}" stroke-opacity=".65" stroke-width="3.4" stroke-linecap="round"/>`,
  ].join('');
  const transform = `translate(${x} ${y})${angle ? ` rotate(${angle})` : ''} scale(${size})`;
  if (tilt !== undefined) return `<g filter="url(#s)" transform="${transform}">${shapes}</g>`;
  return `<g filter="url(#s)" transform="${transform}"><g id="f">${shapes}</g><use href="#f" x="-8" y="18"/></g>`;
}

function isDark(color: string): boolean {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) =>
    Number.parseInt(color.slice(start, start + 2), 16),
  );
  return 0.3 * red + 0.59 * green + 0.11 * blue < 110;
}

/** Empty for half of the pictures. */
function drawPattern(random: Random, ground: string, figure: string): string {
  if (below(random, 2) === 0) return '';
  const { size, paths, opacity } = pick(shapesOf<Pattern>('patterns'), random);
  const figures = paths.map((path) => `<path d="${path}" fill="${figure}" opacity="${opacity}"/>`);
  return `<pattern id="p" width="${size}" height="${size}" patternUnits="userSpaceOnUse"><path d="M0 0H${size}V${size}H0Z" fill="${ground}"/>${figures.join('')}</pattern>`;
}

const skins = ['#f6d7c0', '#edbd98', '#d99b6c', '#b5744a', '#8a5335', '#5f3823'];
const hairColors = ['#2a211d', '#4b3326', '#7a4a2a', '#b8783a', '#d9b36a', '#8f8f94', '#a3402e'];

const mouths = ['M84 118Q100 134 116 118', 'M86 120Q100 128 114 120', 'M82 116Q100 142 118 116Z'];

export function drawFace(random: Random): string {
  const [background, ...clothes] = pick(palettes, random);
  const skin = pick(skins, random);
  const { name, behind, front } = pick(shapesOf<Hair>('hair'), random);
  const shirt = pick(clothes, random);
  const hairColor =
    name === 'Headscarf' ? at(clothes, clothes.indexOf(shirt) + 1) : pick(hairColors, random);
  const glasses =
    below(random, 4) === 0
      ? '<path d="M70 98a13 13 0 1 0 26 0a13 13 0 1 0-26 0M104 98a13 13 0 1 0 26 0a13 13 0 1 0-26 0M96 96Q100 93 104 96" fill="none" stroke="#2b2b2e" stroke-width="3"/>'
      : '';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="200" viewBox="0 0 200 200"><path d="M0 0H200V200H0Z" fill="${background}"/><path d="${behind}" fill="${hairColor}"/><path d="M30 204Q32 156 82 152V132H118V152Q168 156 170 204Z" fill="${shirt}"/><path d="M83 126H117V154Q100 170 83 154Z" fill="${skin}"/><path d="M83 138Q100 150 117 138V144Q100 156 83 144Z" opacity=".12"/><path d="M60 92Q60 52 100 52T140 92Q140 142 100 142T60 92Z" fill="${skin}"/><path d="${front}" fill="${hairColor}"/><path d="M83 99h0M117 99h0" stroke="#2b211d" stroke-width="8" stroke-linecap="round"/><path d="M74 112h0M126 112h0" stroke="#e2574c" stroke-opacity=".28" stroke-width="13" stroke-linecap="round"/><path d="${pick(mouths, random)}" fill="none" stroke="#7a2e2e" stroke-width="3.4" stroke-linecap="round"/>${glasses}</svg>`;
}
