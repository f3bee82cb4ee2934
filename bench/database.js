// The PostgreSQL of the run, and the databases on it: migrated as the service's own, filled with
// generated outfits.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { startEmbeddedPostgres } from '../test/support/databases/embedded-postgres.js';
import { importBulk, importGenerate, importMigrations } from './source.js';

/** @typedef {{ readonly url: string, readonly version: string, close(): Promise<void> }} Server */

/**
 * The server that DATABASE_URL names, or else one of its own, from npm packages.
 * @param {readonly string[]} [options] further ones of a server of its own
 * @returns {Promise<Server>}
 */
export async function openServer(options = []) {
  const given = process.env['DATABASE_URL'];
  if (given) {
    return { url: given, version: await readVersion(given), close: async () => {} };
  }
  const { url, close } = await startEmbeddedPostgres([
    '-c',
    'shared_buffers=512MB',
    '-c',
    'max_wal_size=4GB',
    ...options,
  ]);
  return { url, version: await readVersion(url), close };
}

/** Whether the role of a server may make a checkpoint. @param {Server} server */
export async function canCheckpoint({ url }) {
  return withClient(url, (client) => client.query('CHECKPOINT')).then(
    () => true,
    () => false,
  );
}

/** @param {string} url */
async function readVersion(url) {
  return withClient(url, async (client) => {
    const { rows } = await client.query('SHOW server_version');
    return String(rows[0].server_version);
  });
}

/** The newest outfits, which can be searched: of a million, the index of the texts would take longer than all else. */
const mostTexts = 100_000;

/** @param {number} outfits */
const nameOf = (outfits) => `outfit_bench_${outfits}`;

/** Where the database with so many outfits is, or will be. @param {Server} server @param {number} outfits */
export function urlOf(server, outfits) {
  const url = new URL(server.url);
  url.pathname = `/${nameOf(outfits)}`;
  return url.href;
}

/**
 * Makes a database with so many outfits; one that an earlier run has kept is used again.
 * @param {Server} server
 * @param {number} outfits
 * @param {boolean} keep
 * @param {(done: string) => void} onProgress
 * @returns what drops it, unless it is to be kept
 */
export async function openFilledDatabase(server, outfits, keep, onProgress) {
  const name = nameOf(outfits);
  const url = urlOf(server, outfits);
  const { exists, complete } = await withClient(server.url, async (client) => {
    const { rows } = await client.query(
      `SELECT shobj_description(oid, 'pg_database') AS comment FROM pg_database WHERE datname = $1`,
      [name],
    );
    return { exists: rows.length > 0, complete: rows[0]?.comment === 'complete' };
  });
  const drop = () =>
    withClient(server.url, (client) =>
      client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
    );
  const usable = keep && exists && complete && (await isMigrated(url));
  if (usable) {
    onProgress('kept from an earlier run');
  } else {
    await drop();
    await withClient(server.url, (client) =>
      client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'`),
    );
    await fill(url, outfits, onProgress);
    await withClient(server.url, (client) =>
      client.query(`COMMENT ON DATABASE ${name} IS 'complete'`),
    );
  }
  return async () => {
    if (!keep) await drop();
  };
}

/** @param {string} url */
async function isMigrated(url) {
  const { findPendingMigrations } = await importMigrations();
  return withPool(url, async (pool) => (await findPendingMigrations(pool)).length === 0).catch(
    () => false,
  );
}

/**
 * @param {string} url
 * @param {number} outfits
 * @param {(done: string) => void} onProgress
 */
async function fill(url, outfits, onProgress) {
  const { migrate } = await importMigrations();
  const { raiseSequences } = await importBulk();
  await withPool(url, (pool) => migrate(pool, () => {}));
  await withClient(url, async (client) => {
    // Indexes, keys and counts are made once, at the end.
    await disableTriggers(client);
    const restore = await takeOff(client);
    onProgress('copying');
    await copyOutfits(client, outfits, onProgress);
    onProgress('texts');
    await client.query(
      `INSERT INTO outfit_texts SELECT id, outfit_text(title, description), outfit_hashtags(title || E'\\n' || description) FROM outfits
       ORDER BY id DESC LIMIT ${mostTexts}`,
    );
    onProgress('indexes');
    await client.query(`SET maintenance_work_mem = '512MB'`);
    for (const statement of restore) await client.query(statement);
    onProgress('counts');
    await setCounting(client, true);
    await client.query('SELECT rebuild_outfit_counts()');
  });
  await withPool(url, raiseSequences);
  onProgress('vacuum');
  await withClient(url, async (client) => {
    await client.query('VACUUM ANALYZE');
    await client.query('CHECKPOINT').catch(() => {}); // needs more rights than the rest
  });
}

/**
 * Removes foreign keys and secondary indexes.
 * @param {pg.Client} client
 * @returns {Promise<string[]>} what brings keys and indexes back
 */
async function takeOff(client) {
  const { rows } = await client.query(`
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS remove,
      format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname,
        pg_get_constraintdef(oid)) AS restore
    FROM pg_constraint WHERE contype = 'f'
    UNION ALL
    SELECT format('DROP INDEX %I', indexname), indexdef FROM pg_indexes
    WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey'
  `);
  for (const { remove } of rows) await client.query(remove);
  return rows.map((row) => row.restore);
}

/**
 * Switches the triggers that count on or off.
 * @param {pg.Client} client
 * @param {boolean} on
 */
export async function setCounting(client, on) {
  if (on) await client.query('SELECT enable_outfit_triggers()');
  else await disableTriggers(client, 'note_');
}

/**
 * Those of all tables whose names begin so. `setCounting` switches them on again.
 * @param {pg.Client} client
 * @param {string} prefix
 */
async function disableTriggers(client, prefix = '') {
  const { rows } = await client.query(
    `SELECT format('ALTER TABLE %I DISABLE TRIGGER %I', table_name, name) AS disable
     FROM outfit_triggers() WHERE starts_with(name, $1)`,
    [prefix],
  );
  for (const { disable } of rows) await client.query(disable);
}

export const outfitColumns = /** @type {const} */ ({
  id: 'id',
  title: 'title',
  description: 'description',
  image_key: 'imageKey',
  image_original_key: 'imageOriginalKey',
  complete: 'complete',
  user_id: 'userId',
  quality: 'quality',
  private: 'private',
  background_color: 'backgroundColor',
  video_key: 'videoKey',
  play_video: 'playVideo',
  created: 'created',
  modified: 'modified',
  creation_device: 'creationDevice',
  modification_device: 'modificationDevice',
});

const likeColumns = /** @type {const} */ ({
  id: 'id',
  private: 'private',
  user_id: 'userId',
  likes: 'likes',
});

const userColumns = /** @type {const} */ ({
  id: 'id',
  avatar_key: 'avatarKey',
  username: 'username',
  first_name: 'firstName',
  last_name: 'lastName',
});

/**
 * @param {pg.Client} client
 * @param {number} outfits
 * @param {(done: string) => void} onProgress
 */
async function copyOutfits(client, outfits, onProgress) {
  const { generateOutfits } = await importGenerate();
  /** @type {Map<number, string>} */
  const users = new Map();
  /** @type {Buffer[]} outside of the heap, as there may be ten million of them */
  const likes = [];
  function* writeOutfits() {
    let lines = '';
    let likeLines = '';
    let written = 0;
    for (const outfit of generateOutfits({ outfits, users: Math.ceil(outfits / 10) })) {
      lines += writeRow(outfitColumns, outfit);
      likeLines += writeRow(likeColumns, outfit);
      if (!users.has(outfit.userId)) {
        users.set(outfit.userId, writeRow(userColumns, outfit.user));
      }
      written += 1;
      if (written % 250_000 === 0) onProgress(written.toLocaleString('en'));
      if (lines.length > 65_536) {
        yield lines;
        likes.push(Buffer.from(likeLines));
        lines = likeLines = '';
      }
    }
    yield lines;
    likes.push(Buffer.from(likeLines));
  }
  await copy(client, 'outfits', Object.keys(outfitColumns), writeOutfits());
  await copy(client, 'outfit_like_counts', Object.keys(likeColumns), likes);
  await copy(client, 'users', Object.keys(userColumns), users.values());
}

/**
 * @param {pg.Client} client
 * @param {string} table
 * @param {string[]} columns
 * @param {Iterable<string | Buffer>} lines
 */
async function copy(client, table, columns, lines) {
  const target = client.query(copyFrom(`COPY ${table} (${columns.join(', ')}) FROM STDIN`));
  await pipeline(Readable.from(lines, { objectMode: false, encoding: 'utf8' }), target);
}

/** @type {Record<string, string>} */
const escapes = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * @template {string} Property
 * @param {Readonly<Record<string, Property>>} columns
 * @param {Readonly<Record<Property, unknown>>} row
 */
function writeRow(columns, row) {
  const fields = Object.values(columns).map((property) => {
    const value = row[property];
    return value === null
      ? '\\N'
      : String(value).replace(/[\\\n\r\t]/g, (found) => escapes[found] ?? '');
  });
  return `${fields.join('\t')}\n`;
}

/**
 * The indexes that the hand-written listing needs to sort by; the gateway has its own.
 * @param {string} url
 * @param {boolean} present
 */
export async function setPeerIndexes(url, present) {
  await withClient(url, async (client) => {
    await client.query('DROP INDEX IF EXISTS bench_created_id, bench_likes_id');
    if (!present) return;
    await client.query('CREATE INDEX bench_created_id ON outfits (created DESC, id DESC)');
    await client.query('CREATE INDEX bench_likes_id ON outfit_like_counts (likes, id)');
    await client.query('VACUUM ANALYZE outfits, outfit_like_counts');
  });
}

/**
 * @template Result
 * @param {string} url
 * @param {(client: pg.Client) => Promise<Result>} work
 */
export async function withClient(url, work) {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * @template Result
 * @param {string} url
 * @param {(pool: pg.Pool) => Promise<Result>} work
 */
async function withPool(url, work) {
  const pool = new pg.Pool({ connectionString: url });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
