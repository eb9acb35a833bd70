import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { copyLog, printInTurn } from './copy-log.ts';

const hints = { lifepod: (words: string) => `lifepod ${words}` };

test('logs of all containers end without an error when the reader of the output exits', async () => {
  const stop = new AbortController();
  const [asked, reported] = [[] as string[], [] as unknown[]];
  const print = async (name: string): Promise<void> => {
    asked.push(name);
    if (name === 'unreadable') throw new Error('none');
    if (name === 'closed') stop.abort();
    if (stop.signal.aborted) throw new Error('The operation was aborted');
  };
  const names = ['first', 'unreadable', 'closed', 'last'];
  await printInTurn(names, print, (error) => reported.push(error), stop.signal);
  expect([asked, reported]).toEqual([['first', 'unreadable', 'closed'], [new Error('none')]]);
});

test('a lost connection to the API server is an error that names the next command', async () => {
  const body = Readable.from(
    (async function* () {
      yield Buffer.alloc(0);
      throw new Error('aborted');
    })(),
  );
  await expect(copyLog(body, undefined, new AbortController().signal, hints)).rejects.toThrow(
    /^the connection to the API server was lost: aborted; 'lifepod status' shows whether it answers again$/,
  );
});
