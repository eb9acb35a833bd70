/**
 * Passes the messages of clients with older WebSocket subprotocols to the container runtime. The first byte of a message is its channel; in
 * the base64 subprotocols, the channel is a digit and the rest is base64.
 *
 * The runtime buffers whole messages, and reads a terminal size to its end, however long the size is. So the API server splits long
 * messages, and passes on only terminal sizes that it has parsed (terminal-sizes.ts).
 */
import type { Writable } from 'node:stream';
import { drainedOrClosed } from '../http/wait-for-drain.ts';
import { CHANNEL } from './channels.ts';
import { createSizeReader } from './terminal-sizes.ts';

/**
 * The maximum length of a message without its channel. A longer message can be split, because message boundaries have no meaning within a
 * channel. The length is a multiple of 4, so that base64 text is split between its groups.
 */
const MAX_CONTENT_BYTES = 32 * 1024;

export interface OlderProtocol {
  name: string;
  /** True for exec and attach, whose channel 4 carries terminal sizes; false for port-forward. */
  command: boolean;
}

/**
 * Returns a function that writes a message to the runtime. The function rejects with a ProtocolError if a terminal size is not valid; do
 * not call the function again afterwards.
 */
export function olderMessages(
  { name, command }: OlderProtocol,
  runtime: Writable,
): (message: Uint8Array | string) => Promise<void> {
  const isBase64 = name.includes('base64');
  const resize = isBase64 ? String(CHANNEL.resize).charCodeAt(0) : CHANNEL.resize;
  const sizesOf = createSizeReader();
  const sizesIn = (content: Buffer): Buffer =>
    isBase64
      ? Buffer.from(sizesOf(Buffer.from(content.toString('latin1'), 'base64')).toString('base64'))
      : sizesOf(content);
  return async (message) => {
    const bytes = Buffer.from(message as Uint8Array);
    const [channel] = bytes;
    const isSize = command && channel === resize;
    const content = isSize ? sizesIn(bytes.subarray(1)) : bytes.subarray(1);
    for (let from = 0; from < content.length && runtime.writable; from += MAX_CONTENT_BYTES) {
      const piece = Buffer.concat([bytes.subarray(0, 1), content.subarray(from, from + MAX_CONTENT_BYTES)]);
      if (!runtime.write(typeof message === 'string' ? piece.toString() : piece)) await drainedOrClosed(runtime);
    }
  };
}
