// Single records and writes as one would write them by hand with Fastify, pg and jose: one prepared
// statement each, with the SQL and so the durability of the gateway, and the same JSON.
import Fastify from 'fastify';
import { jwtVerify } from 'jose';
import pg from 'pg';
import { showMoment } from './moment.js';

const mediaUrl = 'https://media.example.com';
const videoUrl = 'https://video.example.com';
const pageSize = 20;
const secret = new TextEncoder().encode(process.env['AUTH_JWT_SECRET']);

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 10 });
const app = Fastify({ logger: false });

const fromOutfits =
  'FROM outfits o JOIN outfit_like_counts l ON l.id = o.id JOIN users u ON u.id = o.user_id';

app.get('/outfits/:id', async (request, reply) => {
  const [row] = await run(
    'outfit',
    `SELECT ${columnsOf('l.likes')} ${fromOutfits} WHERE o.id = $1`,
    [idOf(request)],
  );
  return answer(reply, { outfit: row ? showOutfit(row) : null });
});

app.get('/users/:id', async (request, reply) => {
  const id = idOf(request);
  const [[user], rows] = await Promise.all([
    run(
      'user',
      `SELECT *, (SELECT count(*)::int FROM outfits WHERE user_id = $1) AS count
       FROM users WHERE id = $1`,
      [id],
    ),
    run(
      'outfits of a user',
      `SELECT ${columnsOf('l.likes')} ${fromOutfits}
       WHERE o.user_id = $1 ORDER BY o.created DESC, o.id DESC LIMIT ${pageSize}`,
      [id],
    ),
  ]);
  if (!user) return answer(reply, { user: null });
  const pageCount = Math.max(1, Math.ceil(user['count'] / pageSize));
  const outfits = { count: user['count'], pageCount, page: 1, results: rows.map(showOutfit) };
  return answer(reply, { user: { ...showUser(user), outfits } });
});

app.post('/outfits/:id/like', async (request, reply) => {
  const userId = await readViewer(request);
  const [row] = await run(
    'like',
    `SELECT ${columnsOf('l.likes')}
     FROM like_outfit($1, $2, true, true) l
     CROSS JOIN LATERAL (SELECT (l.outfit).*) o
     CROSS JOIN LATERAL (SELECT (l.owner).*) u`,
    [idOf(request), userId],
  );
  return answer(reply, { likeOutfit: row ? { outfit: showOutfit(row) } : null });
});

app.post('/outfits', async (request, reply) => {
  const userId = await readViewer(request);
  const input = /** @type {Record<string, unknown>} */ (request.body);
  const imageKey = String(input['imageKey']).replace(`${mediaUrl}/`, '');
  const now = Date.now() * 1000;
  const [row] = await run(
    'create',
    `WITH o AS (
       INSERT INTO outfits (title, description, image_key, image_original_key, user_id, background_color,
         created, modified, creation_device)
       VALUES ($1, $2, $3, $3, $4, $5, $6, $6, $7) RETURNING *
     )
     SELECT ${columnsOf('0')} FROM o JOIN users u ON u.id = o.user_id`,
    [
      ...[input['title'], input['description'], imageKey, userId],
      ...[input['backgroundColor'], now, String(input['device']).toLowerCase()],
    ],
  );
  return answer(reply, { createOutfit: row ? { outfit: showOutfit(row), errors: [] } : null });
});

/** @param {string} likes */
function columnsOf(likes) {
  return `
    o.id, o.title, o.description, o.image_key, o.image_original_key, o.complete, ${likes} AS likes, o.user_id,
    u.avatar_key, u.username, u.first_name, u.last_name, o.quality, o.private, o.background_color,
    o.video_key, o.play_video, o.created, o.modified, o.creation_device, o.modification_device`;
}

/** @param {string} name @param {string} text @param {unknown[]} values */
async function run(name, text, values) {
  const { rows } = await pool.query({ name, text, values });
  return rows;
}

/** @param {import('fastify').FastifyRequest} request */
function idOf(request) {
  return Number(/** @type {{ id: string }} */ (request.params).id);
}

/** @param {import('fastify').FastifyRequest} request */
async function readViewer({ headers }) {
  const token = headers.authorization?.replace(/^Bearer /, '') ?? '';
  const { payload } = await jwtVerify(token, secret, { algorithms: ['HS256'] });
  return Number(payload.sub);
}

/** @param {import('fastify').FastifyReply} reply @param {object} data */
function answer(reply, data) {
  return reply
    .header('Content-Type', 'application/json; charset=utf-8')
    .send(JSON.stringify({ data }));
}

/** @param {Record<string, any>} row */
function showOutfit(row) {
  return {
    id: row['id'],
    title: row['title'],
    description: row['description'],
    imageKey: `${mediaUrl}/${row['image_key']}`,
    imageOriginalUrl: `${mediaUrl}/${row['image_original_key']}`,
    complete: row['complete'],
    likes: row['likes'],
    user: showUser({ ...row, id: row['user_id'] }),
    quality: row['quality'],
    private: row['private'],
    backgroundImage: null,
    backgroundColor: row['background_color'],
    video: row['video_key'] === null ? null : `${videoUrl}/${row['video_key']}`,
    playVideo: row['play_video'],
    created: showMoment(row['created']),
    modified: showMoment(row['modified']),
    creationDevice: row['creation_device'],
    modificationDevice: row['modification_device'],
  };
}

/** @param {Record<string, any>} row */
function showUser(row) {
  return {
    id: row['id'],
    avatarKey: row['avatar_key'],
    username: row['username'],
    firstName: row['first_name'],
    lastName: row['last_name'],
  };
}

await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT']) });
