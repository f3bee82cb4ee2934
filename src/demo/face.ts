// A friendly face for each avatar of the demonstration.
import { at, below, pick, type Random } from './random.ts';

const skins = ['#f6d7c0', '#edbd98', '#d99b6c', '#b5744a', '#8a5335', '#5f3823'];
const hairColors = ['#2a211d', '#4b3326', '#7a4a2a', '#b8783a', '#d9b36a', '#8f8f94', '#a3402e'];

/** Hair behind the head, and in front of it. */
const hair: readonly (readonly [behind: string, front: string])[] = [
  // Short
  ['', 'M58 92Q54 46 100 44T142 92Q136 70 118 68 92 74 74 68 62 74 58 92Z'],
  // Long
  [
    'M52 150Q44 42 100 42T148 150Q120 160 100 160T52 150Z',
    'M60 96Q60 56 100 56T140 96Q120 88 108 66 92 88 60 96Z',
  ],
  // Bob
  [
    'M54 128Q44 44 100 44T146 128Q124 136 100 136T54 128Z',
    'M60 92Q62 60 100 60T140 92Q100 78 60 92Z',
  ],
  // Bun
  [
    'M78 40A22 22 0 1 1 122 40 22 22 0 1 1 78 40Z',
    'M58 94Q54 50 100 48T142 94Q128 66 100 64T58 94Z',
  ],
  // Curls
  [
    'M60 116A20 20 0 0 1 48 84 22 22 0 0 1 66 54 24 24 0 0 1 100 40 24 24 0 0 1 134 54 22 22 0 0 1 152 84 20 20 0 0 1 140 116Z',
    'M60 88A14 14 0 0 1 78 66 14 14 0 0 1 100 60 14 14 0 0 1 122 66 14 14 0 0 1 140 88Q128 72 100 76T60 88Z',
  ],
  // Headscarf
  ['M50 178Q40 42 100 40T150 178Z', 'M60 108Q58 58 100 58T140 108Q144 60 100 50T60 108Z'],
  // Bald
  ['', ''],
];

const mouths = ['M84 118Q100 134 116 118', 'M86 120Q100 128 114 120', 'M82 116Q100 142 118 116Z'];

/** @param palette a background, and colours for clothes */
export function drawFace(random: Random, palette: readonly string[]): string {
  const [background, ...clothes] = palette;
  const skin = pick(skins, random);
  const style = below(random, hair.length);
  const [behind, front] = at(hair, style);
  const shirt = pick(clothes, random);
  const hairColor =
    style === 5 ? at(clothes, clothes.indexOf(shirt) + 1) : pick(hairColors, random);
  const glasses =
    below(random, 4) === 0
      ? '<path d="M70 98a13 13 0 1 0 26 0a13 13 0 1 0-26 0M104 98a13 13 0 1 0 26 0a13 13 0 1 0-26 0M96 96Q100 93 104 96" fill="none" stroke="#2b2b2e" stroke-width="3"/>'
      : '';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="200" viewBox="0 0 200 200"><path d="M0 0H200V200H0Z" fill="${background}"/><path d="${behind}" fill="${hairColor}"/><path d="M30 204Q32 156 82 152V132H118V152Q168 156 170 204Z" fill="${shirt}"/><path d="M83 126H117V154Q100 170 83 154Z" fill="${skin}"/><path d="M83 138Q100 150 117 138V144Q100 156 83 144Z" opacity=".12"/><path d="M60 92Q60 52 100 52T140 92Q140 142 100 142T60 92Z" fill="${skin}"/><path d="${front}" fill="${hairColor}"/><path d="M83 99h0M117 99h0" stroke="#2b211d" stroke-width="8" stroke-linecap="round"/><path d="M74 112h0M126 112h0" stroke="#e2574c" stroke-opacity=".28" stroke-width="13" stroke-linecap="round"/><path d="${pick(mouths, random)}" fill="none" stroke="#7a2e2e" stroke-width="3.4" stroke-linecap="round"/>${glasses}</svg>`;
}
