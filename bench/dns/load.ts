/** A worker thread that sends UDP messages at a constant rate, and then posts one message with the times of all responses. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

export interface Load {
  address: string;
  port: number;
  /** The first two bytes are replaced by a number, which the response repeats. */
  message: Uint8Array;
  perSecond: number;
  seconds: number;
}

export interface Measured {
  /** From each query to its response, in microseconds. */
  micros: number[];
  lost: number;
}

/** A response that takes longer counts as lost. */
const LAST_RESPONSE_MILLIS = 2000;

async function run({ address, port, message, perSecond, seconds }: Load): Promise<Measured> {
  const socket = createSocket('udp4');
  socket.connect(port, address);
  await once(socket, 'connect');
  const sentAt = new Map<number, number>();
  const micros: number[] = [];
  const all = Promise.withResolvers<void>();
  const total = perSecond * seconds;
  socket.on('message', (response) => {
    const began = sentAt.get(response.readUInt16BE(0));
    if (began === undefined) return;
    sentAt.delete(response.readUInt16BE(0));
    micros.push((performance.now() - began) * 1000);
    if (micros.length === total) all.resolve();
  });
  const began = performance.now();
  for (let sent = 0; sent < total; ) {
    // Timers fire late, so several queries may be due at once.
    const due = Math.min(total, Math.ceil(((performance.now() - began) * perSecond) / 1000));
    for (; sent < due; sent++) {
      const query = Buffer.from(message);
      query.writeUInt16BE(sent % 65_536, 0);
      sentAt.set(sent % 65_536, performance.now());
      socket.send(query);
    }
    await pause(1);
  }
  await Promise.race([all.promise, pause(LAST_RESPONSE_MILLIS)]);
  socket.close();
  return { micros, lost: total - micros.length };
}

parentPort?.postMessage(await run(workerData as Load));
