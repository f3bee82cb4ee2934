// What killed processes have left behind, removed by those that start after them.
import { readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isAbandoned } from './lock.ts';

/** As `mkdtemp` of the embedded database's thread names it, and as PostgreSQL names a socket. */
const socketFolder = /^outfit-gateway-[A-Za-z0-9]{6}$/;
const socketName = '.s.PGSQL.5432';
/** Milliseconds after which a folder without a socket is nobody's: it is there for an instant only. */
const patience = 60_000;

/**
 * Removes the folders in the temporary folder whose sockets nobody listens on, and the locks that
 * were being moved aside.
 * @param lock the lock that this process holds
 */
export async function removeLeftOvers(lock: string): Promise<void> {
  for (const path of list(tmpdir(), socketFolder)) {
    if (await isNobodys(path)) remove(path);
  }
  for (const path of list(dirname(lock), /^lock\.\d+$/)) {
    if (await isAbandoned(path)) remove(path);
  }
}

async function isNobodys(folder: string): Promise<boolean> {
  const stat = statSync(folder, { throwIfNoEntry: false });
  if (!stat?.isDirectory() || stat.uid !== process.getuid?.()) return false;
  const names = list(folder, /^/).map((path) => path.slice(folder.length + 1));
  if (names.length === 0) return Date.now() - stat.mtimeMs > patience;
  // Whoever keeps other things in it has only chosen the same name.
  return names.every((name) => name === socketName) && isAbandoned(join(folder, socketName));
}

function list(folder: string, pattern: RegExp): string[] {
  try {
    const names = readdirSync(folder).filter((name) => pattern.test(name));
    return names.map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** What cannot be removed harms nobody. */
function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {}
}
