// The limit: a Fastify route that sends the bytes of an answer from memory, with its headers.
import { readFileSync } from 'node:fs';
import Fastify from 'fastify';

/** @typedef {{ method: 'GET' | 'POST', url: string, headers: Record<string, string>, body: string }} StoredAnswer */

const app = Fastify({ logger: false });
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

/** @type {StoredAnswer[]} */
const answers = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
for (const { method, url, headers, body } of answers) {
  const bytes = Buffer.from(body, 'base64');
  app.route({ method, url, handler: (_request, reply) => reply.headers(headers).send(bytes) });
}
await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT']) });
