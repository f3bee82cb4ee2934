// A file or folder that is written whole or not at all: under another name, and renamed at the end.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { ConfigError } from '../config.ts';
import { messageOf } from '../errors.ts';

const pageFile = /^page-\d+\.json$/;

export async function writeWhole(
  path: string,
  overwrite: boolean,
  write: (temporary: string) => Promise<void>,
): Promise<void> {
  await checkPlace(path, overwrite);
  const place = resolve(path);
  const beside = (kind: string) =>
    join(dirname(place), `.${basename(place)}.${randomUUID().slice(0, 8)}.${kind}`);
  const temporary = beside('partial');
  try {
    await write(temporary);
    await checkPlace(path, overwrite);
    await orSay(path, () => moveInto(place, temporary, beside('old')));
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    throw error;
  }
}

export async function orSay<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw notWritten(path, error);
  }
}

export function notWritten(path: string, error: unknown): ConfigError {
  return new ConfigError(
    `${path} cannot be written (${messageOf(error)}): make room there, or choose another place.`,
  );
}

async function checkPlace(path: string, overwrite: boolean): Promise<void> {
  if (!existsSync(dirname(resolve(path)))) {
    throw new ConfigError(`The folder of ${path} does not exist: make it first.`);
  }
  const found = await lstat(path).catch(() => undefined);
  if (!found) return;
  const entries = found.isDirectory() ? await orSay(path, () => readdir(path)) : undefined;
  if (entries?.length === 0) return;
  if (!overwrite) {
    throw new ConfigError(`${path} is there already: choose another name, or add --overwrite.`);
  }
  const other = entries?.find((name) => !pageFile.test(name));
  if (other !== undefined) {
    throw new ConfigError(
      `${path} holds ${JSON.stringify(other)}, which no export has written: choose another folder.`,
    );
  }
}

/** A folder cannot be renamed over one that is not empty, so that one steps aside. */
async function moveInto(place: string, temporary: string, old: string): Promise<void> {
  const found = await lstat(place).catch(() => undefined);
  if (!found?.isDirectory()) {
    await rename(temporary, place);
    return;
  }
  await rename(place, old);
  try {
    await rename(temporary, place);
  } catch (error) {
    await rename(old, place);
    throw error;
  }
  await rm(old, { recursive: true, force: true });
}
