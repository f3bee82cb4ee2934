// Buffers an answer for a comparison, within limits of size and time.
import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream';
import { messageOf } from '../../errors.ts';
import {
  type Answer,
  createDecoder,
  isDecodingError,
  readAtMost,
  toAnswer,
} from '../../http/client.ts';

/** Bytes of a compared body, before and after it is decoded: a page of 20 records has some 20 KiB. */
const maxBytes = 524_288;
/** Commas of a compared body: the time depends on the number of values. 20 records have some 500. */
const maxCommas = 20_000;

/** The answer is too large, too slow or encoded unusually; it is no failure. */
export class NotComparable extends Error {}

/** Call it before anything reads the answer. @throws NotComparable, or the error of an aborted answer */
export async function bufferAnswer(answer: IncomingMessage, seconds?: number): Promise<Answer> {
  let chunks: Buffer[] | undefined = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((settle, reject) => {
    const refuse = (reason: string) => {
      chunks = undefined;
      reject(new NotComparable(reason));
    };
    if (seconds !== undefined) timer = setTimeout(refuse, 1000 * seconds, 'too slow');
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) refuse('too large');
      else chunks?.push(chunk);
    });
    finished(answer.resume(), (error) => (error ? reject(error) : settle()));
  }).finally(() => clearTimeout(timer));
  const { 'content-encoding': encoding, ...headers } = answer.headers;
  // What compresses an answer weakens its tag. @see RFC 9110 §8.8.3
  if (encoding) delete headers.etag;
  const read = Buffer.concat(chunks);
  const status = answer.statusCode ?? 0;
  try {
    // The answer to HEAD has no body to decode.
    const body = read.length === 0 ? read : await decode(read, encoding);
    refuseLarge(body);
    return toAnswer(status, headers, body);
  } catch (error) {
    if (!isDecodingError(error)) throw error;
    return { ...toAnswer(status, headers, Buffer.alloc(0)), undecodable: messageOf(error) };
  }
}

/** @throws NotComparable for another encoding, or a large body */
export async function decode(bytes: Buffer, encoding = 'identity'): Promise<Buffer> {
  if (/^\s*identity\s*$/i.test(encoding)) return bytes;
  const decoder = createDecoder(encoding);
  if (!decoder) throw new NotComparable('encoded in another way');
  const decoded = await readAtMost(decoder.end(bytes), maxBytes);
  if (!decoded) throw new NotComparable('too large');
  return decoded;
}

/** A comparison blocks the thread that answers requests. @throws NotComparable */
export function refuseLarge(body: Buffer): void {
  let commas = 0;
  if (body.length <= maxBytes) for (const byte of body) if (byte === 0x2c) commas++;
  if (body.length > maxBytes || commas > maxCommas) throw new NotComparable('too large');
}
