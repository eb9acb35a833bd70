import { appendFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LogOptions } from '../../ports/node-connection.ts';
import { readTerminationMessage } from '../container/termination-message.ts';
import { compress, rotateLog } from './log-files.ts';
import { type ContainerLogs, createLogSource, readContainerLog } from './log-source.ts';

let folder: string;
let path: string;
let controller: AbortController;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-logs-'));
  path = join(folder, '0.log');
  controller = new AbortController();
});
afterEach(() => {
  controller.abort();
  rmSync(folder, { recursive: true });
});

async function read(options: LogOptions = {}, now?: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of readContainerLog({ path, now }, options, controller.signal)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
const line = (second: number, text: string, stream = 'stdout', tag = 'F'): string =>
  `2026-01-31T09:30:${String(second).padStart(2, '0')}.5Z ${stream} ${tag} ${text}\n`;

const sample = [
  line(1, 'one'),
  line(2, 'two', 'stderr'),
  line(3, 'thr', 'stdout', 'P'),
  line(3, 'ee', 'stdout', 'F'),
  line(4, ''),
  line(5, 'five with  spaces '),
].join('');

describe('readContainerLog', () => {
  const table: [LogOptions, string][] = [
    [{}, 'one\ntwo\nthree\n\nfive with  spaces \n'],
    [{ stream: 'Stderr' }, 'two\n'],
    [{ stream: 'Stdout' }, 'one\nthree\n\nfive with  spaces \n'],
    [{ tailLines: 2 }, '\nfive with  spaces \n'],
    [{ tailLines: 0 }, ''],
    [{ tailLines: 100 }, 'one\ntwo\nthree\n\nfive with  spaces \n'],
    [{ limitBytes: 6 }, 'one\ntw'],
    [{ sinceTime: '2026-01-31T09:30:04Z' }, '\nfive with  spaces \n'],
    [{ sinceTime: '2026-01-31T10:30:04+01:00' }, '\nfive with  spaces \n'],
    [{ sinceSeconds: 5 }, '\nfive with  spaces \n'],
    [{ tailLines: 1, timestamps: true }, '2026-01-31T09:30:05.500000000Z five with  spaces \n'],
    [
      { timestamps: true, limitBytes: 107 },
      '2026-01-31T09:30:01.500000000Z one\n2026-01-31T09:30:02.500000000Z two\n2026-01-31T09:30:03.500000000Z three\n',
    ],
  ];
  it.each(table)(
    'readContainerLog returns the matching part of the log for the options %j',
    async (options, expected) => {
      writeFileSync(path, sample);
      expect(await read(options, Date.parse('2026-01-31T09:30:09Z'))).toBe(expected);
    },
  );

  it('readContainerLog omits lines that are not records, and an incomplete record', async () => {
    writeFileSync(path, `nonsense\n${line(1, 'a')}x y z\n${line(2, 'b')}2026-01-31T09:30:03Z stdout F half`);
    expect(await read()).toBe('a\nb\n');
  });

  it('readContainerLog returns nothing if there is no file', async () => {
    expect(await read()).toBe('');
    expect(await read({ follow: true, tailLines: 3 })).toBe('');
  });

  it('readContainerLog without follow ends where the file ended at the start, although the container continues to write', async () => {
    writeFileSync(path, line(1, 'x'.repeat(100)).repeat(2000));
    const log = readContainerLog({ path }, { tailLines: 1500 }, controller.signal);
    let text = '';
    for await (const chunk of log) {
      text += Buffer.from(chunk);
      appendFileSync(path, line(2, 'later'));
    }
    expect(text).toBe(`${'x'.repeat(100)}\n`.repeat(1500));
  });

  it('readContainerLog returns the tail of a large file, and streams the whole file in pieces', async () => {
    const count = 40_000;
    for (let i = 0; i < count; i += 1000) {
      appendFileSync(path, Array.from({ length: 1000 }, (_, k) => line(0, `${i + k}-${'x'.repeat(100)}`)).join(''));
    }
    expect((await read({ tailLines: 2000 })).split('\n')[0]).toMatch(/^38000-/);
    let lines = 0;
    let largest = 0;
    for await (const chunk of readContainerLog({ path }, {}, controller.signal)) {
      largest = Math.max(largest, chunk.length);
      for (const byte of chunk) if (byte === 0x0a) lines += 1;
    }
    expect(lines).toBe(count);
    expect(largest).toBeLessThan(128 * 1024);
  });
});

describe('following', () => {
  function reader(options: LogOptions, ended: Promise<void>) {
    const log = readContainerLog({ path, ended }, { follow: true, ...options }, controller.signal);
    let text = '';
    return {
      async until(expected: string): Promise<void> {
        while (!text.includes(expected)) {
          const { value, done } = await log.next();
          if (done) throw new Error(`ended after ${JSON.stringify(text)}`);
          text += Buffer.from(value).toString();
        }
      },
      async rest(): Promise<string> {
        for await (const chunk of log) text += Buffer.from(chunk).toString();
        return text;
      },
    };
  }

  it('a follower continues across rotations, and reads everything that was written before the end', async () => {
    const end = Promise.withResolvers<void>();
    writeFileSync(path, sample);
    const log = reader({ tailLines: 1 }, end.promise);
    await log.until('five');
    appendFileSync(path, line(6, 'six'));
    await log.until('six');
    renameSync(path, `${path}.1`);
    appendFileSync(`${path}.1`, line(7, 'late in the old file'));
    await log.until('late');
    writeFileSync(path, line(8, 'first of the new file'));
    await log.until('new file');
    appendFileSync(path, line(9, 'last words'));
    end.resolve();
    expect(await log.rest()).toBe('five with  spaces \nsix\nlate in the old file\nfirst of the new file\nlast words\n');
  });

  /** Rotates the log at this second of a fixed minute. */
  const rotate = (second: number): Promise<unknown> =>
    rotateLog({
      path,
      maxBytes: 30,
      maxFiles: 50,
      now: Date.UTC(2026, 0, 31, 9, 30, second),
      reopen: async () => writeFileSync(path, ''),
    });

  it('a follower reads what the runtime still writes to the old file after a rotation', async () => {
    const end = Promise.withResolvers<void>();
    writeFileSync(path, line(1, 'one'));
    const log = reader({}, end.promise);
    await log.until('one');
    await rotate(2);
    appendFileSync(path, line(2, 'two'));
    await log.until('two');
    appendFileSync(`${path}.20260131-093002`, line(2, 'late', 'stderr'));
    await log.until('late');
    end.resolve();
    expect(await log.rest()).toBe('one\ntwo\nlate\n');
  });

  it('a follower completes an incomplete record across a rotation', async () => {
    const end = Promise.withResolvers<void>();
    const [half, other] = [line(1, 'one').slice(0, 30), line(1, 'one').slice(30)];
    writeFileSync(path, line(0, 'zero') + half);
    const log = reader({}, end.promise);
    await log.until('zero');
    await rotate(2);
    appendFileSync(path, line(2, 'two'));
    const rest = log.rest();
    // Make many more file system calls than the reader needs to find the new file.
    for (let step = 0; step < 200; step++) await stat(path);
    appendFileSync(`${path}.20260131-093002`, other);
    end.resolve();
    expect(await rest).toBe('zero\none\ntwo\n');
  });

  it('a follower that is several rotations behind misses nothing', async () => {
    const end = Promise.withResolvers<void>();
    writeFileSync(path, line(0, 'zero'));
    const log = reader({}, end.promise);
    await log.until('zero');
    for (const second of [1, 2, 3]) {
      await rotate(second);
      appendFileSync(path, line(second, `after rotation ${second}`));
    }
    await compress(`${path}.20260131-093002`, controller.signal);
    expect(existsSync(`${path}.20260131-093002`)).toBe(false);
    end.resolve();
    expect(await log.rest()).toBe('zero\nafter rotation 1\nafter rotation 2\nafter rotation 3\n');
  });

  it('a follower waits for a file that does not exist yet', async () => {
    const end = Promise.withResolvers<void>();
    const log = reader({}, end.promise);
    const first = log.until('hello');
    writeFileSync(path, line(1, 'hello'));
    await first;
    end.resolve();
    expect(await log.rest()).toBe('hello\n');
  });

  it('a follower ends when the client disconnects', async () => {
    writeFileSync(path, sample);
    const log = reader({}, new Promise(() => undefined));
    await log.until('five');
    const rest = log.rest();
    controller.abort();
    expect(await rest).toContain('one\n');
  });
});

describe('createLogSource', () => {
  const never = new Promise<void>(() => undefined);
  const attempt = (
    number: number,
    state: 'created' | 'running' | 'exited',
    ended = state === 'exited' ? Promise.resolve() : never,
  ) => ({
    attempt: number,
    state,
    path: join(folder, `${number}.log`),
    ended: () => ended,
  });
  async function get(logs: ContainerLogs | undefined, previous = false): Promise<string> {
    for (const number of [0, 1, 2]) writeFileSync(join(folder, `${number}.log`), line(1, `run ${number}`));
    const source = createLogSource(
      (uid, container) => (uid === 'u' && container === 'c' ? logs : undefined),
      () => 0,
    );
    const pod = { namespace: 'ns', name: 'p', uid: 'u' };
    let text = '';
    for await (const chunk of source.logs(pod, 'c', { previous }, controller.signal))
      text += Buffer.from(chunk).toString();
    return text;
  }

  it('the log source reads the current and the previous run', async () => {
    const running = { attempts: [attempt(1, 'exited'), attempt(2, 'running'), attempt(0, 'exited')] };
    expect(await get(running)).toBe('run 2\n');
    expect(await get(running, true)).toBe('run 1\n');
    const backingOff = { attempts: [attempt(0, 'exited'), attempt(1, 'exited')], waitingReason: 'CrashLoopBackOff' };
    expect(await get(backingOff)).toBe('run 1\n');
    expect(await get(backingOff, true)).toBe('run 1\n');
  });

  it('the log of a run that has exited is read once the runtime has written all of it', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const text = get({ attempts: [attempt(0, 'exited', promise)] });
    // By now, the log source has called ended(). If the log source did not wait for the result, it would have opened the file.
    await new Promise(setImmediate);
    writeFileSync(join(folder, '0.log'), line(2, 'the last line'), { flag: 'a' });
    resolve();
    expect(await text).toBe('run 0\nthe last line\n');
  });

  const failures: [string, ContainerLogs | undefined, boolean][] = [
    ['container "c" in pod "p" is not available', undefined, false],
    [
      'container "c" in pod "p" is waiting to start: PodInitializing',
      { attempts: [], waitingReason: 'PodInitializing' },
      false,
    ],
    [
      `container "c" in pod "p" is waiting to start: image can't be pulled`,
      { attempts: [], waitingReason: 'ErrImagePull' },
      false,
    ],
    [
      'container "c" in pod "p" is waiting to start: trying and failing to pull image',
      { attempts: [], waitingReason: 'ImagePullBackOff' },
      false,
    ],
    ['container "c" in pod "p" is waiting to start - no logs yet', { attempts: [] }, false],
    [
      'previous terminated container "c" in pod "p" not found',
      { attempts: [], waitingReason: 'PodInitializing' },
      true,
    ],
  ];
  it.each(failures)('the log source rejects with: %s', async (message, logs, previous) => {
    await expect(get(logs, previous)).rejects.toMatchObject({ message, code: 400, reason: 'BadRequest' });
  });
  it('the log source rejects a request for the previous run while the first one runs', async () => {
    await expect(get({ attempts: [attempt(0, 'running')] }, true)).rejects.toThrow('previous terminated container');
  });
});

describe('readTerminationMessage', () => {
  let logEnded = async (): Promise<void> => undefined;
  const message = (policy: string | undefined, exitCode: number) =>
    readTerminationMessage(
      { file: join(folder, 'message'), logFile: path, logEnded, policy, exitCode },
      controller.signal,
    );

  it('readTerminationMessage returns the first 4096 bytes of the file', async () => {
    writeFileSync(join(folder, 'message'), 'm'.repeat(5000));
    expect(await message('FallbackToLogsOnError', 1)).toBe('m'.repeat(4096));
  });
  it('readTerminationMessage falls back to the end of the log only after an error', async () => {
    writeFileSync(join(folder, 'message'), '');
    writeFileSync(path, Array.from({ length: 100 }, (_, i) => line(1, `line ${i}`)).join(''));
    expect(await message('FallbackToLogsOnError', 0)).toBe('');
    expect(await message('File', 1)).toBe('');
    const end = await message('FallbackToLogsOnError', 1);
    expect(end.split('\n')[0]).toBe('line 20');
    expect(end.endsWith('line 99\n')).toBe(true);
    writeFileSync(path, line(1, 'y'.repeat(5000)));
    expect(await message('FallbackToLogsOnError', 1)).toBe(`${'y'.repeat(2047)}\n`);
  });
  it('readTerminationMessage reads the log once the runtime has written all of it', async () => {
    writeFileSync(path, line(1, 'first'));
    logEnded = async () => writeFileSync(path, line(2, 'last'), { flag: 'a' });
    expect(await message('FallbackToLogsOnError', 1)).toBe('first\nlast\n');
  });
  it('readTerminationMessage reports an error if the container replaced the file with something else', async () => {
    rmSync(join(folder, 'message'), { force: true });
    mkdirSync(join(folder, 'message'));
    expect(await message('File', 1)).toContain('Error on reading termination log');
  });
});
