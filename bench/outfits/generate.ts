// The demonstration set, the same on every machine.

import type { User } from '../../src/generated/prisma/client.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { at, below, createRandom, draw, pick, type Random } from './random.ts';
import {
  emoji,
  english,
  handleWords,
  type Language,
  languages,
  longColors,
  mentionLeads,
  oddTexts,
  shortColors,
} from './words.ts';

/** How much to generate, and from which seed. */
export interface GenerateOptions {
  readonly outfits?: number;
  readonly users?: number;
  readonly seed?: number;
}

// Every stream has its own random sequence per row, so that one property can change alone.
const streams = {
  user: 1,
  outfit: 2,
  owner: 3,
  text: 4,
  created: 5,
  gap: 6,
  avatar: 7,
  names: 8,
  odd: 9,
  title: 10,
  description: 11,
  image: 12,
  original: 13,
  likes: 14,
  quality: 15,
  visibility: 16,
  color: 17,
  video: 18,
  tie: 19,
  precision: 20,
  change: 21,
  device: 22,
  cultures: 23,
  ending: 24,
  mention: 25,
} as const;

const firstMoment = Date.UTC(2019, 0, 7, 8) * 1000;
const lastMoment = Date.UTC(2026, 4, 31, 20) * 1000;
const secondMicros = 1_000_000;
const ninetyDaysMicros = 90 * 24 * 3600 * secondMicros;
const mostLikes = 250_000;

// Every 8th outfit goes to the next user in turn, so that each user has some.
const turn = 8;
// One id in 50 is missing, as if the outfit had been deleted.
const idBlock = 50;

/**
 * Generates outfits with their users, oldest first, one at a time. It holds nothing, reads no clock
 * and no locale: the same arguments give the same bytes on every machine. All that the contract
 * allows occurs within any 2,000 outfits, not by chance but because the rare forms are dealt out
 * like cards.
 */
export function* generateOutfits({
  outfits = 2400,
  users = 240,
  seed = 1,
}: GenerateOptions = {}): Generator<OutfitRow> {
  if (outfits > 0 && users < 1) throw new RangeError('Outfits need at least one user.');
  for (let index = 0; index < outfits; index += 1) {
    yield generateOutfit(index, outfits, users, seed);
  }
}

function generateOutfit(index: number, outfits: number, users: number, seed: number): OutfitRow {
  const random = createRandom(seed, streams.outfit, index);
  const userId = chooseOwner(index, users, seed);
  const text = writeText(index, userId, users, seed);
  const image = deal(index, 100, streams.image, seed) < 85 ? 'jpeg' : 'png';
  const imageKey = `outfits/${writeUuid(random)}.${image}`;
  const originalDiffers = deal(index, 100, streams.original, seed) < 2;
  const videoKey =
    deal(index, 100, streams.video, seed) < 12 ? `outfits_videos/${writeUuid(random)}.mp4` : null;
  const created = chooseCreated(index, outfits, seed);
  const change = chooseChange(index, random, seed);
  return {
    id: chooseId(index, seed),
    title: text.title,
    description: text.description,
    imageKey,
    imageOriginalKey: originalDiffers ? `outfits/${writeUuid(random)}.png` : imageKey,
    complete: true,
    likes: chooseLikes(index, random, seed),
    userId,
    quality: chooseQuality(index, seed),
    private: deal(index, 100, streams.visibility, seed) < 10,
    backgroundColor: chooseColor(index, random, seed),
    videoKey,
    playVideo: videoKey !== null,
    created: BigInt(created),
    modified: BigInt(created + change.delay),
    creationDevice: chooseDevice(deal(index, 100, streams.device, seed)),
    modificationDevice: change.device,
    user: generateUser(userId, seed),
  };
}

function generateUser(id: number, seed: number): User {
  const random = createRandom(seed, streams.user, id);
  const avatar = deal(id, 20, streams.avatar, seed);
  const extension = avatar < 15 ? 'jpeg' : avatar < 19 ? 'png' : 'gif';
  const names = deal(id, 20, streams.names, seed);
  const { given, family } = chooseNames(id, seed);
  return {
    id,
    avatarKey: avatar < 6 ? '' : `avatars/${writeUuid(random)}.${extension}`,
    username: chooseUsername(id, seed),
    firstName: names < 2 ? '' : given.shown,
    lastName: names === 0 || names === 2 || names === 3 ? '' : family.shown,
  };
}

function chooseLanguage(userId: number, seed: number): Language {
  return languages[(userId + hash(seed, streams.cultures, 0)) % languages.length] ?? english;
}

/** Chooses names so that no two users of a few hundred have both in common. */
function chooseNames(userId: number, seed: number) {
  const { givenNames, familyNames } = chooseLanguage(userId, seed);
  const turnOfLanguage = Math.floor((userId - 1) / languages.length);
  const round = Math.floor(turnOfLanguage / givenNames.length);
  return {
    given: at(givenNames, turnOfLanguage),
    family: at(familyNames, turnOfLanguage + round),
    round: Math.floor(round / familyNames.length),
  };
}

function chooseUsername(userId: number, seed: number): string {
  const random = createRandom(seed, streams.names, userId);
  const { given, family, round } = chooseNames(userId, seed);
  const word = pick(handleWords, random);
  const forms = [
    `${given.handle}_${family.handle}`,
    `${given.handle}-${family.handle}`,
    `${given.handle}${family.handle}`,
    `${capitalize(given.handle)}${capitalize(family.handle)}`,
    `${given.handle}-${family.handle}-${word}`,
    `${given.handle}_${family.handle}_${word}`,
  ];
  const form = at(forms, userId);
  const number = below(random, 100);
  // From the second round on, names repeat; the number tells the users apart.
  if (round > 0) return `${form}${99 + round}`;
  return number < 30 ? `${form}${70 + number}` : form;
}

/** Chooses an owner: everybody in turn, and in between a few who publish a lot. */
function chooseOwner(index: number, users: number, seed: number): number {
  if (index % turn === 0) return ((index / turn) % users) + 1;
  const share = draw(createRandom(seed, streams.owner, index));
  return Math.floor(share * share * users) + 1;
}

function chooseId(index: number, seed: number): number {
  const block = Math.floor(index / (idBlock - 1));
  const position = index % (idBlock - 1);
  const missing = 1 + (hash(seed, streams.gap, block) % (idBlock - 2));
  return block * idBlock + position + (position < missing ? 1 : 2);
}

function chooseCreated(index: number, outfits: number, seed: number): number {
  // Only the second of a pair takes over its neighbour's moment, so that no chain can form.
  const tied = index % 2 === 1 && deal((index - 1) / 2, 50, streams.tie, seed) === 0;
  const source = tied ? index - 1 : index;
  const random = createRandom(seed, streams.created, source);
  // Up to three steps late: later ids are mostly, but not always, later outfits.
  const step = (lastMoment - firstMoment) / (outfits + 3);
  const moment = Math.floor(firstMoment + step * (source + 3 * draw(random)));
  const precision = deal(source, 50, streams.precision, seed);
  if (precision < 2) return moment - (moment % secondMicros);
  return precision < 4 ? moment - (moment % 1000) : moment;
}

function chooseChange(index: number, random: Random, seed: number) {
  const card = deal(index, 100, streams.change, seed);
  if (card < 35) return { delay: 0, device: '' };
  if (card < 65) return { delay: 1 + below(random, 9), device: '' };
  const share = draw(random);
  // Most changes follow within hours, some after months.
  const delay = secondMicros + Math.floor(share * share * share * ninetyDaysMicros);
  return { delay, device: chooseDevice((card * 7) % 100) };
}

function chooseDevice(card: number): string {
  if (card < 50) return 'ios';
  return card < 85 ? 'android' : 'web';
}

function chooseLikes(index: number, random: Random, seed: number): number {
  if (deal(index, 100, streams.likes, seed) < 30) return 0;
  // A long tail from a division alone: powers and logarithms may differ between machines.
  return Math.min(mostLikes, 1 + Math.floor(9 / (1 - draw(random)) - 9));
}

function chooseQuality(index: number, seed: number): number {
  const card = deal(index, 100, streams.quality, seed);
  if (card < 8) return 2;
  if (card < 38) return 3;
  return card < 80 ? 4 : 5;
}

function chooseColor(index: number, random: Random, seed: number): string {
  const card = deal(index, 100, streams.color, seed);
  if (card < 40) return '';
  return card < 55 ? pick(shortColors, random) : pick(longColors, random);
}

function writeText(index: number, userId: number, users: number, seed: number) {
  const odd = oddTexts[deal(index, 1000, streams.odd, seed)];
  if (odd) return odd;
  const random = createRandom(seed, streams.text, index);
  // Users whose turn it is write their own language, so that every language occurs.
  const own = index % turn === 0 || below(random, 100) < 40;
  const language = own ? chooseLanguage(userId, seed) : english;
  return {
    title: writeTitle(language, deal(index, 100, streams.title, seed), random),
    description: writeDescription(language, index, userId, users, seed, random),
  };
}

function writeTitle(language: Language, card: number, random: Random): string {
  if (card < 5) return '';
  const title =
    card % 2 === 0
      ? pick(language.titles, random)
      : `${pick(language.clothes, random)} + ${pick(language.extras, random)}`;
  return card < 35 ? `${title} ${pick(emoji, random)}` : title;
}

function writeDescription(
  language: Language,
  index: number,
  userId: number,
  users: number,
  seed: number,
  random: Random,
): string {
  const card = deal(index, 100, streams.description, seed);
  if (card < 12) return '';
  const { stories, closings, hashtags, space } = language;
  let text = pick(card % 3 === 0 ? closings : stories, random);
  if (card % 3 === 1) text += `${card < 40 ? '\n' : space}${pick(closings, random)}`;
  const ending = deal(index, 100, streams.ending, seed);
  if (ending < 25) text += ` ${pick(emoji, random)}`;
  if (deal(index, 100, streams.mention, seed) < 15) {
    const mentioned = chooseOther(userId, users, random);
    text += `\n${pick(mentionLeads, random)} @${chooseUsername(mentioned, seed)}`;
  }
  if (ending % 2 === 0) {
    const hashtag = below(random, hashtags.length);
    text += `${ending < 50 ? '\n\n' : ' '}#${at(hashtags, hashtag)}`;
    if (ending % 4 === 0) text += ` #${at(hashtags, hashtag + 1)}`;
  }
  return text;
}

/** Chooses a user other than the given one, if there is another. */
function chooseOther(userId: number, users: number, random: Random): number {
  return users === 1 ? userId : ((userId + below(random, users - 1)) % users) + 1;
}

function capitalize(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** Writes a version 4 UUID from 128 random bits. */
function writeUuid(random: Random): string {
  const first = writeHex(random());
  const second = writeHex(((random() & 0xffff0fff) | 0x4000) >>> 0);
  const third = writeHex(((random() & 0x3fffffff) | 0x80000000) >>> 0);
  const fourth = writeHex(random());
  const middle = `${second.slice(0, 4)}-${second.slice(4)}-${third.slice(0, 4)}`;
  return `${first}-${middle}-${third.slice(4)}${fourth}`;
}

function writeHex(value: number): string {
  return value.toString(16).padStart(8, '0');
}

/**
 * Deals a card from 0 to size - 1 to each index: every run of `size` indexes from a multiple of it
 * gets each card once, in an order of its own. `size` has no prime factors but 2 and 5.
 */
function deal(index: number, size: number, stream: number, seed: number): number {
  const block = Math.floor(index / size);
  const order = hash(seed, stream, block);
  // Any step ending in 1, 3, 7 or 9 visits every card.
  const step = at([7, 11, 13, 17, 19, 23, 27, 29, 31, 33, 37, 39, 41, 43], order >>> 16);
  return ((index % size) * step + (order & 0xffff)) % size;
}

/** Mixes three integers into one from 0 to 2^32 - 1. */
function hash(seed: number, stream: number, index: number): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(stream, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ index, 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
