// Count and any page from the bucket counts, against count(*) and ORDER BY ... OFFSET.
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Ordering } from '../src/outfits/ordering.ts';
import { findPage } from '../src/outfits/pages.ts';
import { openGateway, type TestGateway } from './gateway.ts';

const fields = ['created', 'id', 'likes', 'modified'] as const;
const users = 20;
const columns =
  'id, image_key, image_original_key, likes, user_id, private, created, modified, title';

/** What statements are sent to: a connection, or a pool. */
type Queryable = Pick<pg.Client, 'query'>;

/** Gives whole numbers from 0 to below its argument, the same ones for the same seed. */
type Random = (below: number) => number;

function seededRandom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** One of `choices`, each as likely as its weight says. */
function pick<Choice>(random: Random, choices: readonly (readonly [number, Choice])[]): Choice {
  let left = random(choices.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, choice] of choices) {
    left -= weight;
    if (left < 0) return choice;
  }
  throw new Error('There is nothing to pick from.');
}

// Random values: crowded, spread out, and at the ends of what the columns hold.

const drawId = (random: Random): number =>
  pick(random, [
    [85, 1 + random(6000)],
    [9, -1 - random(3000)],
    [3, 2_147_483_600 + random(48)],
    [3, -2_147_483_648 + random(48)],
  ]);

const drawLikes = (random: Random): number =>
  pick(random, [
    [50, random(12)],
    [30, random(400)],
    [12, random(70_000)],
    [5, 2_147_483_647 - random(3)],
    [3, -1 - random(3)],
  ]);

const drawMoment = (random: Random): bigint =>
  pick(random, [
    [45, 1_700_000_000_000_000n + BigInt(random(1_000_000)) * 61_000_000n],
    [20, 1_700_000_000_000_000n + BigInt(random(3))],
    [15, 1_700_000_000_000_000n + BigInt(random(10_000_000_000))],
    [10, -BigInt(random(2 ** 50))],
    [4, 2n ** 62n + BigInt(random(100)) - 50n],
    [4, -(2n ** 62n) + BigInt(random(100)) - 50n],
    [2, random(2) ? 2n ** 63n - 1n : -(2n ** 63n)],
  ]);

function drawRow(random: Random, id: number | string = drawId(random)): string {
  return `(${id}, 'k', 'k', ${drawLikes(random)}, ${1 + random(users)}, ${random(3) === 0}, ${drawMoment(random)}, ${drawMoment(random)}, '')`;
}

/** Sorted by id, so that two statements at the same time never wait for each other's rows. */
function drawRows(random: Random, most: number): string {
  const ids = new Set(Array.from({ length: 1 + random(most) }, () => drawId(random)));
  return [...ids]
    .sort((a, b) => a - b)
    .map((id) => drawRow(random, id))
    .join(', ');
}

const anyOutfit = (random: Random) =>
  `id = (SELECT id FROM outfits WHERE id >= ${drawId(random)} ORDER BY id LIMIT 1)`;

/** A few hundred neighbours at most, locked in the order of ids, for the same reason. */
const anyRange = (random: Random, width: number) => {
  const low = 1 + random(6000);
  return `id IN (SELECT id FROM outfits WHERE id BETWEEN ${low} AND ${low + random(width)} ORDER BY id FOR UPDATE)`;
};

/** Writes of one kind: one statement that fires the triggers of one command. */
const plainWrites: readonly (readonly [number, (random: Random) => string])[] = [
  [18, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRow(random)} ON CONFLICT DO NOTHING`],
  [2, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRow(random, 'DEFAULT')} ON CONFLICT DO NOTHING`],
  [5, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRows(random, 6)} ON CONFLICT DO NOTHING`],
  [16, (random) => `DELETE FROM outfits WHERE ${anyOutfit(random)}`],
  [18, (random) => `UPDATE outfits SET likes = likes + 1 WHERE ${anyOutfit(random)} AND likes < 2147483647`],
  [8, (random) => `UPDATE outfits SET likes = greatest(likes - ${1 + random(5)}, 0) WHERE ${anyOutfit(random)} AND likes > 0`],
  [4, (random) => `UPDATE outfits SET likes = ${drawLikes(random)} WHERE ${anyOutfit(random)}`],
  [8, (random) => `UPDATE outfits SET private = NOT private WHERE ${anyOutfit(random)}`],
  [5, (random) => `UPDATE outfits SET created = ${drawMoment(random)} WHERE ${anyOutfit(random)}`],
  [5, (random) => `UPDATE outfits SET modified = ${drawMoment(random)}, title = 'edited' WHERE ${anyOutfit(random)}`],
  [2, (random) => `UPDATE outfits SET title = 'the same place' WHERE ${anyOutfit(random)}`],
  [1, (random) => `UPDATE outfits SET likes = likes + 1, private = likes % 3 = 0 WHERE ${anyRange(random, 40)} AND likes < 2147483647`],
  [1, (random) => `UPDATE outfits SET modified = modified / 2 + created / 2 WHERE ${anyRange(random, 40)}`],
  [1, (random) => `DELETE FROM outfits WHERE ${anyRange(random, 8)}`],
]; // biome-ignore format: one write, one line

/** Writes that fire the triggers of several commands, or that may break the primary key. */
const compoundWrites: readonly (readonly [number, (random: Random) => string])[] = [
  [4, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRows(random, 5)} ON CONFLICT (id) DO UPDATE SET likes = excluded.likes, private = excluded.private, modified = excluded.modified`],
  [4, (random) => {
    const id = drawId(random);
    return `UPDATE outfits SET id = ${id} WHERE ${anyOutfit(random)} AND NOT EXISTS (SELECT FROM outfits WHERE id = ${id})`;
  }],
  [1, (random) => `INSERT INTO outfits (${columns}) SELECT id + 6000, 'k', 'k', likes, user_id, NOT private, modified, created, '' FROM outfits WHERE ${anyRange(random, 12)} ON CONFLICT DO NOTHING`],
  [1, (random) => `WITH gone AS (DELETE FROM outfits WHERE ${anyRange(random, 4)} RETURNING *) INSERT INTO outfits (${columns}) SELECT -id - ${random(9)}, image_key, image_original_key, likes, user_id, private, created, modified, title FROM gone ON CONFLICT DO NOTHING`],
];
