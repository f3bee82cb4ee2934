// GET /media/{key}: draws the picture of any well-formed key of the demonstration set.
import type { FastifyInstance } from 'fastify';
import { avatarKey, imageKey, videoKey } from '../outfits/writes/input.ts';
import { drawPicture } from './picture.ts';

const headers = {
  'Content-Type': 'image/svg+xml',
  // The picture of a key never changes.
  'Cache-Control': 'public, max-age=31536000, immutable',
  // Opened directly, an SVG is a document: the policy disables scripts.
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  // Pages of other origins may embed it.
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
        .send(Buffer.from(JSON.stringify({ detail })));
    },
    handler: () => {},
  });
}
