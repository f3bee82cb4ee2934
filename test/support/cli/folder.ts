// A folder for the files of each test.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

/** A folder that goes with the test, or with the file. @param atEnd `onTestFinished` or `afterAll` */
export function makeFolder(atEnd: (remove: () => void) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-test-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** For all tests of a file. */
export function useFolder() {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-test-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const at = (name = '') => join(folder, name);
  return {
    /** The path of what has this name in it; of itself without one. */
    at,
    /** Writes a file, and gives its path. */
    save(name: string, content: string | Buffer): string {
      mkdirSync(dirname(at(name)), { recursive: true });
      writeFileSync(at(name), content);
      return at(name);
    },
  };
}
