// A file on its way: an address from the small server of uploads/, the file to that address, and its key as imageKey.
import { authorization } from './gateway.ts';

const uploads = `${import.meta.env.VITE_UPLOADS ?? 'http://localhost:5174'}/uploads`;

/** Keys of files that are stored: a retry sends the same one, and so is the same request. */
const keys = new WeakMap<File, string>();

/** @returns the key of the file, for `imageKey` */
export async function upload(file: File): Promise<string> {
  const known = keys.get(file);
  if (known) return known;
  const answer = await fetch(uploads, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...authorization() },
    body: JSON.stringify({ type: file.type }),
  });
  if (!answer.ok) throw new Error(`No upload: ${await answer.text()}`);
  const { key, url } = (await answer.json()) as { key: string; url: string };
  const stored = await fetch(url, {
    method: 'PUT',
    headers: { 'content-type': file.type },
    body: file,
  });
  if (!stored.ok) throw new Error(`The file was not stored: ${stored.status}`);
  keys.set(file, key);
  return key;
}
