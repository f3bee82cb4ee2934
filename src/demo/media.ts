// /media/: the pictures of the demonstration, for /media/ followed by any key of the stored shape.
import type { FastifyInstance } from 'fastify';
import { encodeJson } from '../http/json.ts';
import { avatarKey, imageKey, videoKey } from '../outfits/writes/input.ts';
import { drawPicture } from './picture.ts';

const headers = {
  'Content-Type': 'image/svg+xml',
  // A key has one picture for ever.
  'Cache-Control': 'public, max-age=31536000, immutable',
  // Opened on its own, it is a document: one that may do nothing.
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  // Apps on other ports show it, too.
  'Cross-Origin-Resource-Policy': 'cross-origin',
};

export function servePictures(app: FastifyInstance): void {
  app.route<{ Params: { '*': string } }>({
    method: app.supportedMethods,
    url: '/media/*',
    // Before any body is read.
    onRequest: async ({ method, params }, reply) => {
      const key = params['*'];
      const isKey = [imageKey, videoKey, avatarKey].some((pattern) => key && pattern.test(key));
      if (isKey && (method === 'GET' || method === 'HEAD')) {
        return reply.headers(headers).send(Buffer.from(drawPicture(key)));
      }
      const detail = isKey ? `Method "${method}" not allowed.` : 'Not found.';
      if (isKey) reply.header('Allow', 'GET, HEAD');
      return reply
        .code(isKey ? 405 : 404)
        .header('Content-Type', 'application/json')
        .send(encodeJson({ detail }));
    },
    handler: () => {},
  });
}
