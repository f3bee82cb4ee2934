// Writes: likes given by clients of the database, not of the gateway.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/**
 * Clients that each give one like after the other to random outfits.
 * @param {string} url
 * @param {number} clients
 */
export async function openLikers(url, clients) {
  const open = await Promise.all(Array.from({ length: clients }, () => openLiker(url)));
  return {
    /**
     * @param {number} seconds
     * @returns {Promise<number>} likes per second
     */
    async measure(seconds) {
      const start = performance.now();
      const deadline = start + seconds * 1000;
      let likes = 0;
      await Promise.all(
        open.map(async (liker) => {
          while (performance.now() < deadline) {
            await liker.like();
            likes += 1;
          }
        }),
      );
      return (likes * 1000) / (performance.now() - start);
    },
    close: () => Promise.all(open.map((liker) => liker.close())),
  };
}

/**
 * One client that gives so many likes per second until it is stopped.
 * @param {string} url
 * @param {number} perSecond
 */
export async function startLiking(url, perSecond) {
  const liker = await openLiker(url);
  const start = performance.now();
  let stopped = false;
  const write = async () => {
    for (let likes = 1; !stopped; likes += 1) {
      await liker.like();
      await sleep(Math.max(0, start + (likes * 1000) / perSecond - performance.now()));
    }
  };
  const written = write();
  written.catch(() => {}); // a failure is thrown by stop
  return {
    stop: async () => {
      stopped = true;
      await written.finally(() => liker.close());
    },
  };
}

/**
 * Applies pending changes to the counts by one client, whenever there are as many as a gateway waits for, and the rest
 * when it is stopped.
 * @param {string} url
 */
export function startMaintenance(url) {
  let stopped = false;
  const maintain = async () => {
    const client = new pg.Client(url);
    await client.connect();
    const applyAll = async () => {
      for (let isDone = false; !isDone; ) {
        const { rows } = await client.query('SELECT is_done FROM apply_pending_outfit_changes()');
        isDone = rows[0].is_done;
      }
    };
    while (!stopped) {
      const { rows } = await client.query('SELECT count_pending_outfit_changes(500) AS pending');
      if (rows[0].pending >= 500) await applyAll();
      await sleep(250);
    }
    await applyAll();
    await client.end();
  };
  const ended = maintain();
  ended.catch(() => {}); // a failure is thrown by stop
  return {
    stop: async () => {
      stopped = true;
      await ended;
    },
  };
}

/** @param {string} url */
async function openLiker(url) {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query(
    'SELECT min(id) AS least, max(id) AS most FROM outfit_like_counts',
  );
  const { least, most } = rows[0];
  return {
    // One id in 50 is missing: the next one is taken instead, so that every call writes.
    like: () =>
      client.query({
        name: 'like',
        text: `UPDATE outfit_like_counts SET likes = likes + 1
          WHERE id = (SELECT id FROM outfit_like_counts WHERE id >= $1 ORDER BY id LIMIT 1)`,
        values: [least + Math.floor(Math.random() * (most - least))],
      }),
    close: () => client.end(),
  };
}
