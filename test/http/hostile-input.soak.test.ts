// Hostile input by machine: whatever is sent, the process lives, answers others, and logs and counts nothing strange.
// HOSTILE_SEED repeats the batches from that seed on, HOSTILE_SECONDS says how long batches are sent.
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { schema } from '../../src/graphql/schema.ts';
import { baseOf, demoEnvironment, runServer } from '../support/cli/process.ts';
import {
  hostileFrame,
  hostileMessage,
  hostileOperation,
  hostileRequest,
} from '../support/http/hostile-input.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { Dice } from '../support/models/dice.ts';

const firstSeed = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 2 ** 31);
const seconds = Number(process.env['HOSTILE_SECONDS'] ?? 15);
/** Milliseconds: an answer that takes longer hangs, unless the machine is shared with others. */
const patience = Number(process.env['HOSTILE_PATIENCE'] ?? 2_000);
/** The sender is a trusted proxy; the other client is not. */
const sender = '127.0.0.2';
const otherClient = '127.0.0.3';

test('any input leaves the process alive, other clients answered, and log and metrics as they are', {
  timeout: (seconds + 120) * 1000,
}, async () => {
  console.log(`HOSTILE_SEED=${firstSeed} HOSTILE_SECONDS=${seconds}`);
  const server = runServer({
    ...(await demoEnvironment()),
    AUTH_JWT_SECRET: secret,
    CORS_ORIGINS: 'https://app.test',
    LOG_FORMAT: 'json',
    METRICS_PORT: '0',
    NODE_OPTIONS: '--max-old-space-size=512',
    TRUST_PROXY: sender,
  });
  const { hostname: host, port } = new URL(await baseOf(server));
  const [, metricsPort] = await server.until(/Metrics: +http:\/\/[^/]+:(\d+)\/metrics/);
  const address = { host, port: Number(port), localAddress: sender };
  const token = (await signIn(5))['authorization'] ?? '';

  /** Sends bytes in pieces, and gives what is answered until the connection ends, or a moment later. */
  const exchange = async (dice: Dice, pieces: readonly Buffer[]) => {
    const socket = connect({ ...address, noDelay: true, allowHalfOpen: true });
    socket.on('error', () => {});
    const received: Buffer[] = [];
    socket.on('data', (piece) => received.push(piece));
    const closed = once(socket, 'close').catch(() => {});
    for (const piece of pieces) {
      if (!socket.destroyed) socket.write(piece);
      await sleep(dice.pick([0, 0, 0, 20]));
    }
    if (dice.chance(0.5)) socket.end();
    await Promise.race([closed, sleep(dice.pick([50, 1_000]))]);
    if (dice.chance(0.5)) socket.resetAndDestroy();
    else socket.destroy();
    return Buffer.concat(received).toString('latin1');
  };
  const expectNoFault = (answer: string) => {
    for (const [, status] of answer.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
      expect(status).not.toBe('500');
    }
  };

  const agent = new Agent({ keepAlive: true, localAddress: sender });
  const post = (payload: object, headers: Record<string, string>) =>
    new Promise<string>((settle) => {
      const options = { ...address, agent, method: 'POST', path: '/graphql', headers };
      const sent = request(options, async (response) => {
        const chunks = await response.toArray().catch(() => []);
        settle(`HTTP/1.1 ${response.statusCode} ${Buffer.concat(chunks)}`);
      });
      sent.on('error', (error) => settle(String(error))).setTimeout(20_000, () => sent.destroy());
      sent.end(JSON.stringify(payload));
    });

  const openWebSocket = async () => {
    const url = `ws://${host}:${port}/graphql`;
    const socket = new WebSocket(url, 'graphql-transport-ws', { localAddress: sender });
    socket.on('error', () => {});
    await Promise.race([once(socket, 'open'), once(socket, 'close'), sleep(20_000)]);
    return socket;
  };

  const handshake = Buffer.from(
    'GET /graphql HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n',
  );
  let answered = 0;
  const batches: Readonly<Record<string, (dice: Dice) => Promise<unknown>>> = {
    requests: (all) =>
      Promise.all(
        all.split(40).map(async (dice) => {
          const pieces = [
            hostileRequest(dice, token),
            ...dice.times(2, () => hostileRequest(dice, token)),
          ];
          expectNoFault(
            await exchange(
              dice,
              pieces.flatMap((piece) => dice.cut(piece)),
            ),
          );
        }),
      ),
    operations: (all) =>
      Promise.all(
        all.split(8).map(async (dice) => {
          const events = dice.chance(0.1) ? { accept: 'text/event-stream' } : {};
          const signedIn = dice.chance(0.7) ? { authorization: token } : {};
          const headers = {
            'content-type': 'application/json',
            connection: 'close',
            ...events,
            ...signedIn,
          };
          const sent = post(hostileOperation(schema, dice), headers);
          const answer = await Promise.race([sent, sleep(events.accept ? 1_000 : 25_000, '')]);
          expectNoFault(answer);
          if (answer.startsWith('HTTP/1.1 ')) answered += 1;
        }),
      ),
    messages: (all) =>
      Promise.all(
        all.split(6).map(async (dice) => {
          const socket = await openWebSocket();
          if (socket.readyState !== socket.OPEN) return;
          if (dice.chance(0.7)) socket.send('{"type":"connection_init"}');
          for (let id = 0; id < 6 && socket.readyState === socket.OPEN; id += 1) {
            socket.send(hostileMessage(schema, dice, id));
            await sleep(dice.pick([0, 30]));
          }
          await sleep(dice.pick([0, 500]));
          socket.terminate();
        }),
      ),
    frames: async (all) => {
      const answers = await Promise.all(
        all
          .split(20)
          .map((dice) => exchange(dice, [handshake, ...dice.times(6, () => hostileFrame(dice))])),
      );
      expect(answers.filter((it) => it.startsWith('HTTP/1.1 101 '))).not.toHaveLength(0);
      for (const answer of answers) expectNoFault(answer);
    },
  };

  const readLabels = async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    const labels = new Set<string>();
    for (const [, name, value] of text.matchAll(/[{,](\w+)="((?:[^"\\]|\\.)*)"/g))
      labels.add(`${name}=${value}`);
    return labels;
  };
  /** Values that the gateway chooses, the names of HTTP, and patterns of paths. */
  const ownLabel =
    /^(?:le|quantile|space|version|type|kind|lane|reason|transport|standby|outcome|interface|major|minor|patch)=|^status=\d{3}$|^method=[A-Z-]+$|^code=[A-Z_]+$|^(?:route|path)=(?:none|[/\w:*.()^$+\\-]+)$/;
  /** Names that clients choose, and how many there may be at a time, with `other`. */
  const chosen = { client: 51, operation: 102 };
  const expectBoundedLabels = async () => {
    const labels = [...(await readLabels())];
    const chosenNames = new RegExp(`^(?:${Object.keys(chosen).join('|')})=`);
    expect(labels.filter((label) => !ownLabel.test(label) && !chosenNames.test(label))).toEqual([]);
    for (const [name, most] of Object.entries(chosen)) {
      expect(labels.filter((label) => label.startsWith(`${name}=`)).length).toBeLessThanOrEqual(
        most,
      );
    }
  };

  const waits: number[] = [];
  const late: unknown[] = [];
  /** Asks for answers of no work at all, from memory, and of the database. */
  const other = new Worker(new URL('../support/http/other-client.js', import.meta.url), {
    workerData: {
      options: { ...address, localAddress: otherClient },
      paths: [
        '/health/live',
        '/api/outfits/',
        '/graphql?query={outfits{count}}',
        '/api/outfits/7/',
      ],
    },
  });
  onTestFinished(async () => void (await other.terminate()));
  other.on('message', (answer) => {
    waits.push(answer.wait);
    if (answer.status !== 200 || answer.wait > patience) late.push(answer);
  });

  let logged = server.output().length;
  const end = performance.now() + seconds * 1000;
  let seed = firstSeed;
  const kinds = Object.keys(batches);
  const least = 5 * kinds.length;
  for (; performance.now() < end || seed - firstSeed < least; seed += 1) {
    const kind = kinds[seed % kinds.length] ?? '';
    const context = `HOSTILE_SEED=${seed} (${kind}, from ${firstSeed} on)`;
    try {
      const before = waits.length;
      await batches[kind]?.(new Dice(seed));
      await expect.poll(() => waits.length).toBeGreaterThan(before);
      expect(late).toEqual([]);
      expect([server.child.exitCode, server.child.signalCode, server.errors()]).toEqual([
        null,
        null,
        '',
      ]);
      const output = server.output();
      const lines = output.slice(logged, output.lastIndexOf('\n') + 1);
      logged = output.lastIndexOf('\n') + 1;
      for (const line of lines.split('\n').filter(Boolean)) {
        const { level, ...fields } = JSON.parse(line);
        expect({ level, ...fields }).not.toMatchObject({
          level: expect.stringMatching(/fatal|error/),
        });
        expect(line).not.toContain('"stack"');
      }
      await expectBoundedLabels();
    } catch (error) {
      await sleep(500);
      const { exitCode, signalCode } = server.child;
      const end = `${exitCode ?? signalCode} ${server.errors().slice(-2_000)} ${server.output().slice(-3_000)}`;
      throw new Error(`${context}: ${end}`, { cause: error });
    }
  }
  // Of at least 40 that are sent; streams may be silent.
  expect(answered).toBeGreaterThan(30);
  waits.sort((a, b) => a - b);
  const at = (share: number) => Math.round(waits[Math.floor(share * (waits.length - 1))] ?? 0);
  console.log(
    `seeds ${firstSeed} to ${seed - 1}, ${answered} operations; the other client waited p50 ${at(0.5)}, p99 ${at(0.99)}, at most ${at(1)} ms, ${waits.length} times`,
  );
});
