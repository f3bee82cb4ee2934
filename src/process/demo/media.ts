// GET /media/{key}: the picture of any well-formed key of the demonstration set.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { packageFolder } from '../../config/package.ts';
import { avatarKey, imageKey, videoKey } from '../../outfits/writes/input.ts';

const headers = {
  'Content-Type': 'image/svg+xml',
  // The picture of a key never changes.
  'Cache-Control': 'public, max-age=31536000, immutable',
  // Opened directly, an SVG is a document: the policy disables scripts.
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  // Pages of other origins may embed it.
  'Cross-Origin-Resource-Policy': 'cross-origin',
};

const keys = [imageKey, videoKey, avatarKey];

export function servePictures(app: FastifyInstance): void {
  app.route<{ Params: { '*': string } }>({
    method: app.supportedMethods,
    url: '/media/*',
    // Before any body is read.
    onRequest: async ({ method, params }, reply) => {
      const key = params['*'];
      const isKey = keys.some((pattern) => key && pattern.test(key));
      if (isKey && (method === 'GET' || method === 'HEAD')) {
        return reply.headers(headers).send(Buffer.from(pictureOf(key)));
      }
      const detail = isKey ? `Method "${method}" not allowed.` : 'Not found.';
      if (isKey) reply.header('Allow', 'GET, HEAD');
      return reply
        .code(isKey ? 405 : 404)
        .header('Content-Type', 'application/json')
        .send(Buffer.from(JSON.stringify({ detail })));
    },
    handler: () => {},
  });
}

type Pictures = Readonly<Record<'avatars' | 'outfits', readonly string[]>>;

let pictures: Pictures | undefined;

/** Read on first use. */
function readPictures(): Pictures {
  const file = readFileSync(new URL('dist/demo/pictures.ndjson', packageFolder), 'utf8');
  const lines = file.trim().split('\n');
  const all = (kind: keyof Pictures): string[] => lines.flatMap((line) => JSON.parse(line)[kind]);
  return { avatars: all('avatars'), outfits: all('outfits') };
}

const playMark =
  '<circle cx="150" cy="200" r="38" fill="#1c1c20" opacity=".72"/><path d="M138 180V220L172 200Z" fill="#fff"/>';

/** By a digest of the key, an outfit in one of 360 hues: the same on every machine. */
export function pictureOf(key: string): string {
  pictures ??= readPictures();
  const digest = createHash('sha256').update(key).digest();
  const list = key.startsWith('avatars/') ? pictures.avatars : pictures.outfits;
  const hue = digest.readUInt32LE(4) % 360;
  return (list[digest.readUInt32LE(0) % list.length] ?? '')
    .replace('hueRotate" values="0"', `hueRotate" values="${hue}"`)
    .replace('</svg>', `${key.startsWith('outfits_videos/') ? playMark : ''}</svg>`);
}
