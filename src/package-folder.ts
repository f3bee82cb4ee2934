// Where package.json, prisma/ and dist/ are: this runs in src/ in tests, and bundled somewhere below dist/.
import { existsSync } from 'node:fs';

/** The URL of the folder, with a slash at its end. */
export const packageFolder = find(new URL('.', import.meta.url));

function find(folder: URL): URL {
  const above = new URL('..', folder);
  if (existsSync(new URL('package.json', folder)) || above.href === folder.href) return folder;
  return find(above);
}
