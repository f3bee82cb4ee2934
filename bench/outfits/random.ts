// A seeded random generator: the same numbers on every machine.

export type Random = () => number;

/** sfc32, for one row or picture. With 32 bits of state, two of ten million rows would have the same UUID. */
export function createRandom(seed: number, stream: number, index: number): Random {
  let a = seed | 0;
  let b = stream | 0;
  let c = index | 0;
  let counter = 1;
  const next = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return sum >>> 0;
  };
  // The first numbers still resemble the arguments.
  for (let round = 0; round < 12; round += 1) next();
  return next;
}

/** A fraction in [0, 1). */
export function draw(random: Random): number {
  return random() / 0x1_0000_0000;
}

export function below(random: Random, limit: number): number {
  return Math.floor(draw(random) * limit);
}

export function pick<T>(list: readonly T[], random: Random): T {
  return at(list, below(random, list.length));
}

/** The item at an index modulo the length. */
export function at<T>(list: readonly T[], index: number): T {
  const item = list[index % list.length];
  if (item === undefined) throw new RangeError('The list is empty.');
  return item;
}
