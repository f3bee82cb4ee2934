// An answer over HTTP as a whole: collected within a limit, and decoded.
import type { IncomingMessage } from 'node:http';
import { type Answer, createDecoder, toAnswer } from '../http/client.ts';
import { readAtMost } from '../http/read-at-most.ts';

/**
 * Most bytes of a body that is compared, before and after it is decoded. Nothing else is answered while
 * it is: a page of 20 records has some 20 KiB.
 */
const maxBytes = 524_288;
/** Most commas in it: what takes time is how many values a body has. 20 records have some 500. */
const maxCommas = 20_000;
const comma = 0x2c;

/** Why an answer cannot be compared; nothing is wrong with it. */
export class NotComparable extends Error {}

/** @throws NotComparable for a body that would keep the answers of others waiting */
export function refuseLarge(body: Buffer): void {
  let commas = 0;
  if (body.length <= maxBytes) for (const byte of body) if (byte === comma) commas++;
  if (body.length > maxBytes || commas > maxCommas) throw new NotComparable('too large');
}

/**
 * Listens to an answer that is on its way; to be called before any of it has been read.
 * @param seconds that it may take from here to its end; undefined: any time
 * @throws NotComparable when it is too large or slow, or encoded in another way; when it breaks off,
 * its error
 */
export async function receive(answer: IncomingMessage, seconds?: number): Promise<Answer> {
  let chunks: Buffer[] | undefined = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((settle, reject) => {
    const giveUp = (reason: string) => {
      chunks = undefined;
      reject(new NotComparable(reason));
    };
    if (seconds !== undefined) timer = setTimeout(giveUp, 1000 * seconds, 'too slow');
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) giveUp('too large');
      else chunks?.push(chunk);
    });
    answer.once('end', settle);
    answer.once('error', reject);
    answer.once('close', () => reject(new Error('The answer broke off.')));
  }).finally(() => clearTimeout(timer));
  const { 'content-encoding': encoding, ...headers } = answer.headers;
  const body = await decode(Buffer.concat(chunks), encoding);
  refuseLarge(body);
  return toAnswer(answer.statusCode ?? 0, headers, body);
}

async function decode(bytes: Buffer, encoding = 'identity'): Promise<Buffer> {
  if (/^\s*identity\s*$/i.test(encoding)) return bytes;
  const decoder = createDecoder(encoding);
  if (!decoder) throw new NotComparable('encoded in another way');
  const decoded = await readAtMost(decoder.end(bytes), maxBytes).catch(() => {
    throw new NotComparable('cannot be decoded');
  });
  if (!decoded) throw new NotComparable('too large');
  return decoded;
}
