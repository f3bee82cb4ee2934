// Read-your-writes: what was written in the old service is read there, and saved here, before its writer is answered.
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import { safeMethods } from '../../http/headers.ts';
import { createLogThrottle } from '../../observability/log.ts';
import { readProperty } from '../../old-listing/page.ts';
import { bufferAnswer, decode } from './answer-buffer.ts';
import { conditionalHeaders } from './comparisons.ts';
import { toLegacyHeaders } from './forwarded-headers.ts';
import { type Forwarding, pairsOf } from './upstream.ts';

export interface RecordStore {
  /** Taken before a record is read. */
  readMoment(): Promise<string>;
  /** @returns false when the record was saved after the moment: then it must be read again */
  save(record: unknown, moment: string): Promise<boolean>;
  remove(id: number): Promise<void>;
}

/** Milliseconds that an answer waits for it. */
const maxTime = 5_000;
/** Reads of one record, while others save it. */
const maxReads = 5;
/** Bytes of the answer to a creation that are looked at. */
const maxBytes = 262_144;

/** Headers that describe the body of the write. */
const ofBody = /^(?:accept|content-.*|idempotency-key|transfer-encoding|trailer)$/i;

export class OwnWrites {
  readonly #logThrottle = createLogThrottle(false);

  /** @param paths of the listing, such as `/api/outfits/` */
  constructor(
    private readonly forwarding: Forwarding,
    private readonly paths: readonly string[],
    private readonly records: RecordStore,
    private readonly log: FastifyBaseLogger,
  ) {}

  /** Never rejects. @returns the bytes of the answer that it has read */
  async follow(request: FastifyRequest, answer: IncomingMessage): Promise<readonly Buffer[]> {
    const { method, url } = request;
    const { statusCode: status = 0, headers } = answer;
    const [path = ''] = url.split('?', 1);
    const list = this.paths.find((one) => path.startsWith(one));
    if (safeMethods.has(method) || status < 200 || status > 299 || list === undefined) return [];
    const late = sleep(maxTime, undefined, { ref: false }).then(() => {
      throw new Error('it took too long');
    });
    late.catch(() => {});
    const [, named] = /^(\d+)(?:\/|$)/.exec(path.slice(list.length)) ?? [];
    const chunks = named === undefined && path === list ? await readStart(answer) : [];
    const body = Buffer.concat(chunks);
    const follow = async () => {
      const created: unknown =
        body.length === 0
          ? undefined
          : JSON.parse((await decode(body, headers['content-encoding'])).toString());
      const id = Number(named ?? readProperty(created, 'id'));
      const isDeletion = method === 'DELETE' && /^\d+\/?$/.test(path.slice(list.length));
      if (Number.isInteger(id))
        await this.#bring(request, `${list}${id}/`, id, isDeletion, created);
    };
    await Promise.race([follow(), late]).catch((err) =>
      this.#logThrottle(this.log, (suppressed) =>
        this.log.warn({ err, suppressed }, 'a write in the old service could not be followed'),
      ),
    );
    return chunks;
  }

  /** @param created the record as the answer has it, for a service without a path of single records */
  async #bring(
    request: FastifyRequest,
    target: string,
    id: number,
    isDeletion: boolean,
    created: unknown,
  ): Promise<void> {
    const { upstream, gateway, legacyHost } = this.forwarding;
    const kept = pairsOf(toLegacyHeaders(request, gateway, legacyHost)).filter(
      ([name]) => !conditionalHeaders.has(name.toLowerCase()) && !ofBody.test(name),
    );
    const headers = [...kept.flat(), 'Accept', 'application/json'];
    for (let reads = 0; reads < maxReads; reads++) {
      const moment = await this.records.readMoment();
      const signal = AbortSignal.timeout(maxTime);
      const answer = await upstream.open({ method: 'GET', target, headers, signal });
      const { status, body } = await bufferAnswer(answer);
      if ((status === 404 || status === 410) && isDeletion) return this.records.remove(id);
      const record = status === 200 ? JSON.parse(body.toString()) : created;
      if (readProperty(record, 'id') !== id) return;
      if (await this.records.save(record, moment)) return;
    }
  }
}

/** Reads an answer to its end, or so much of it, or so long; what is left can be piped. */
function readStart(answer: IncomingMessage): Promise<readonly Buffer[]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve) => {
    const stop = () => {
      clearTimeout(timer);
      answer.pause().off('data', onData).off('end', stop).off('close', stop);
      resolve(chunks);
    };
    const timer = setTimeout(stop, maxTime).unref();
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) stop();
    };
    answer.on('data', onData).once('end', stop).once('close', stop).resume();
  });
}
