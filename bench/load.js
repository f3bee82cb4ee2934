// The load generator: plain sockets that write a fixed request and count answers by their
// Content-Length. It shares the machine with what it measures, so it must cost next to nothing.
import { once } from 'node:events';
import { connect } from 'node:net';

/** @typedef {{ readonly status: number, readonly headers: Record<string, string>, readonly body: Buffer }} Answer */

/** @typedef {readonly Buffer[] | (() => Buffer)} Requests sent in turn, or made when they are sent */

/**
 * @typedef {object} Round
 * @property {number} rate answers per second
 * @property {number[]} milliseconds of each answer, sorted
 */

const endOfHead = Buffer.from('\r\n\r\n');

/**
 * Keeps every connection busy with one request at a time. When the time is over, waits for what is
 * still on its way, so that nothing of it burdens the next round.
 * @param {number} port
 * @param {Requests} requests
 * @param {{ connections: number, seconds: number }} amount
 * @returns {Promise<Round>}
 * @throws when an answer is not a 200
 */
export async function sendLoad(port, requests, { connections, seconds }) {
  /** @type {number[]} */
  const milliseconds = [];
  let sent = 0;
  let last = 0;
  let deadline = Number.POSITIVE_INFINITY;
  const channels = await Promise.all(Array.from({ length: connections }, () => openChannel(port)));
  const start = performance.now();
  deadline = start + seconds * 1000;
  try {
    await Promise.all(channels.map((channel) => channel.run(next, onAnswer)));
  } finally {
    for (const channel of channels) channel.close();
  }
  milliseconds.sort((a, b) => a - b);
  return { rate: (milliseconds.length * 1000) / (last - start), milliseconds };

  /** @param {number} now */
  function next(now) {
    if (now >= deadline) return undefined;
    return typeof requests === 'function' ? requests() : requests[sent++ % requests.length];
  }

  /** @param {number} now @param {number} duration */
  function onAnswer(now, duration) {
    last = now;
    milliseconds.push(duration);
  }
}

/**
 * Sends one request and gives the whole answer.
 * @param {number} port
 * @param {Buffer} request
 * @returns {Promise<Answer>}
 */
export async function fetchAnswer(port, request) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.write(request);
  /** @type {Buffer[]} */
  const chunks = [];
  for await (const chunk of socket) {
    chunks.push(chunk);
    const all = Buffer.concat(chunks);
    const end = all.indexOf(endOfHead);
    if (end < 0 || all.length < end + 4 + readLength(all, end)) continue;
    const [first = '', ...lines] = all.toString('latin1', 0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    return { status: Number(first.split(' ')[1]), headers, body: all.subarray(end + 4) };
  }
  throw new Error('The connection was closed before the answer was complete.');
}

/** @param {number} port */
async function openChannel(port) {
  /** What is left to come of the current answer; 0 while its head is not complete. */
  let missing = 0;
  /** @type {Buffer | undefined} the beginning of a head that came in parts */
  let head;
  let sentAt = 0;
  /** @type {(now: number) => Buffer | undefined} */
  let next = () => undefined;
  /** @type {(now: number, duration: number) => void} */
  let onAnswer = () => {};
  /** @type {() => void} */
  let settle = () => {};
  /** @type {(error: Error) => void} */
  let fail = () => {};

  const socket = connect({
    port,
    host: '127.0.0.1',
    noDelay: true,
    // One buffer for all that is read: nothing is allocated per answer.
    onread: { buffer: Buffer.allocUnsafe(262_144), callback: read },
  });
  await once(socket, 'connect');

  return {
    /**
     * @param {typeof next} giveNext the next request to send; undefined ends the run
     * @param {typeof onAnswer} report
     */
    run(giveNext, report) {
      next = giveNext;
      onAnswer = report;
      return /** @type {Promise<void>} */ (
        new Promise((resolve, reject) => {
          settle = resolve;
          fail = reject;
          socket.on('error', reject);
          socket.on('close', () => reject(new Error('The server closed the connection.')));
          send(performance.now());
        })
      );
    },
    close: () => socket.destroy(),
  };

  /** @param {number} now */
  function send(now) {
    const request = next(now);
    if (!request) return settle();
    sentAt = now;
    socket.write(request);
  }

  /** @param {number} length @param {Uint8Array} buffer */
  function read(length, buffer) {
    if (missing === 0) {
      const fresh = Buffer.from(buffer.buffer, buffer.byteOffset, length);
      const bytes = head ? Buffer.concat([head, fresh]) : fresh;
      const end = bytes.indexOf(endOfHead);
      if (end < 0) {
        head = Buffer.from(bytes);
        return true;
      }
      head = undefined;
      // "HTTP/1.1 200"
      if (bytes.toString('latin1', 9, 12) !== '200') {
        fail(new Error(`An answer was ${bytes.toString('latin1', 0, 300)}`));
        return false;
      }
      missing = end + 4 + readLength(bytes, end) - bytes.length;
    } else {
      missing -= length;
    }
    if (missing > 0) return true;
    const now = performance.now();
    onAnswer(now, now - sentAt);
    send(now);
    return true;
  }
}

/** @param {Buffer} bytes @param {number} end of the head */
function readLength(bytes, end) {
  const match = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString('latin1', 0, end));
  if (!match) throw new Error('An answer has no Content-Length.');
  return Number(match[1]);
}
