// Bodies of others, up to a limit: no server can fill the memory.

/**
 * All that comes, as it comes out of any decompression. Undefined when it is more than `max` bytes: then
 * the rest is not read, and what it came from is ended.
 */
export async function readAtMost(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  max: number,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const read: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    length += piece.length;
    // Leaving the loop ends the connection.
    if (length > max) return undefined;
    read.push(piece);
  }
  return Buffer.concat(read);
}
