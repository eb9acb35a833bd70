import { fstatSync, write } from 'node:fs';
import { promisify } from 'node:util';
import type { Output } from './sink.ts';

const STDOUT = 1;
const writeTo = promisify(write);

/**
 * Standard output may be a file, for example if the engine runs in the background. process.stdout.write() would block the event loop until
 * the lines are in the file, so fs.write() writes them in another thread.
 */
export function standardOutput(): Output {
  const put = fstatSync(STDOUT).isFile() ? writeFile : writeStream;
  return {
    async append(lines) {
      try {
        await put(Buffer.concat(lines));
        return { written: lines.length };
      } catch (error) {
        return { written: 0, error: error as Error };
      }
    },
    close: async () => undefined,
  };
}

async function writeFile(bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await writeTo(STDOUT, bytes, at, bytes.length - at, null)).bytesWritten;
}

const writeStream = (bytes: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
