// The listing as one would write it by hand with Fastify and pg: prepared statements, a pool of 10,
// an index for every order. With CONSTANT_COUNT set, count and offset are left out.
import Fastify from 'fastify';
import pg from 'pg';
import { showMoment } from './moment.js';

const mediaUrl = 'https://media.example.com';
const videoUrl = 'https://video.example.com';
const pageSize = 20;
const constantCount = Number(process.env['CONSTANT_COUNT'] ?? 0);

/** @type {Record<string, string>} */
const orders = { created: 'o.created DESC, o.id DESC', like_count: 'l.likes, l.id' };

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 10 });
const app = Fastify({ logger: false });

app.get('/api/outfits/', async (request, reply) => {
  const query = /** @type {{ ordering?: string, page?: string }} */ (request.query);
  const page = Number(query.page ?? 1);
  const ordering = query.ordering ?? 'created';
  const [count, rows] = constantCount
    ? [constantCount, await readFirstRows(ordering)]
    : await Promise.all([readCount(), readRows(ordering, page)]);
  /** @param {number} number */
  const link = (number) =>
    `http://${request.host}/api/outfits/?${query.ordering ? `ordering=${ordering}&` : ''}page=${number}`;
  const envelope = {
    count,
    next: page * pageSize < count ? link(page + 1) : null,
    previous: page > 1 ? link(page - 1) : null,
    results: rows.map(showOutfit),
  };
  return reply
    .header('Content-Type', 'application/json')
    .header('Allow', 'GET, POST, HEAD, OPTIONS')
    .header('Vary', 'Accept')
    .send(Buffer.from(encode(envelope)));
});

/** @param {unknown} value */
function encode(value) {
  return JSON.stringify(value).replace(/[\u2028\u2029]/g, (separator) =>
    separator === '\u2028' ? '\\u2028' : '\\u2029',
  );
}

async function readCount() {
  const { rows } = await pool.query({
    name: 'count',
    text: 'SELECT count(*)::int AS count FROM outfits',
  });
  return Number(rows[0].count);
}

/** @param {string} ordering */
function select(ordering) {
  return `
    SELECT o.id, o.title, o.description, o.image_key, o.image_original_key, o.complete, l.likes,
      o.user_id, u.avatar_key, u.username, u.first_name, u.last_name, o.quality, o.private,
      o.background_color, o.video_key, o.play_video, o.created, o.modified, o.creation_device,
      o.modification_device
    FROM outfits o JOIN outfit_like_counts l ON l.id = o.id JOIN users u ON u.id = o.user_id
    ORDER BY ${orders[ordering]} LIMIT ${pageSize}`;
}

/** @param {string} ordering @param {number} page */
async function readRows(ordering, page) {
  const { rows } = await pool.query({
    name: `page by ${ordering}`,
    text: `${select(ordering)} OFFSET $1`,
    values: [(page - 1) * pageSize],
  });
  return rows;
}

/** @param {string} ordering */
async function readFirstRows(ordering) {
  const { rows } = await pool.query({ name: `first by ${ordering}`, text: select(ordering) });
  return rows;
}

/** @param {Record<string, any>} row */
function showOutfit(row) {
  return {
    id: row['id'],
    title: row['title'],
    description: row['description'],
    image_key: `${mediaUrl}/${row['image_key']}`,
    image_original_url: `${mediaUrl}/${row['image_original_key']}`,
    complete: row['complete'],
    likes: row['likes'],
    user: {
      id: row['user_id'],
      avatar_key: row['avatar_key'],
      username: row['username'],
      first_name: row['first_name'],
      last_name: row['last_name'],
    },
    quality: row['quality'],
    private: row['private'],
    background_image: null,
    background_color: row['background_color'],
    video: row['video_key'] === null ? null : `${videoUrl}/${row['video_key']}`,
    play_video: row['play_video'],
    created: showMoment(row['created']),
    modified: showMoment(row['modified']),
    creation_device: row['creation_device'],
    modification_device: row['modification_device'],
  };
}

await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT']) });
