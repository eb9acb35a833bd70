import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  dataDirOwner,
  dataDirReleased,
  ensureDataDir,
  ensurePrivateFolder,
  givenDataDir,
  lockDataDir,
  readTextIfPresent,
  realDataDir,
  realFolder,
  writeFileAtomic,
} from './files.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test('realFolder resolves links in the path of a folder, even before the folder exists', () => {
  const real = realpathSync(folder);
  mkdirSync(join(real, 'disk/data'), { recursive: true });
  symlinkSync('disk', join(real, 'link'));
  expect(realFolder(join(folder, 'link/data'))).toBe(join(real, 'disk/data'));
  expect(realFolder(join(folder, 'link/new/deep'))).toBe(join(real, 'disk/new/deep'));
  expect(realFolder('/nonexistent/x')).toBe('/nonexistent/x');
});

test('ensurePrivateFolder sets mode 0700 on new and existing folders', () => {
  ensurePrivateFolder(join(folder, 'a/b'));
  expect(modeOf(join(folder, 'a/b'))).toBe(0o700);
  chmodSync(join(folder, 'a'), 0o755);
  ensurePrivateFolder(join(folder, 'a'));
  expect(modeOf(join(folder, 'a'))).toBe(0o700);
});

test('a data folder whose path is, or passes through, a file is refused, also by a command that only reads', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  for (const path of [file, join(file, 'below')]) {
    for (const use of [ensureDataDir, realDataDir, givenDataDir])
      expect(() => use(path)).toThrow(`${path} is not a folder: choose another --data-dir`);
  }
  for (const path of [folder, join(folder, 'new')]) expect(givenDataDir(path)).toBe(realFolder(path));
});

test('an empty name of a data folder is refused', () => {
  for (const use of [realDataDir, givenDataDir])
    expect(() => use('')).toThrow('--data-dir is empty: give a folder, such as /var/lib/lifepod');
});

test('a data folder in a file system that creates no folders is refused', () => {
  expect(() => ensureDataDir('/proc/lifepod/data')).toThrow(
    /^the data folder \/proc\/lifepod\/data cannot be created \(its file system allows no new folders\): choose another --data-dir$/,
  );
});

test('a data folder behind a symbolic link to a missing folder is refused', () => {
  symlinkSync(join(folder, 'missing'), join(folder, 'link'));
  expect(() => ensureDataDir(join(folder, 'link'))).toThrow(/symbolic link in its path leads to a missing folder/);
});

test('writeFileAtomic replaces content and mode and leaves no temporary file', () => {
  const path = join(folder, 'x');
  writeFileSync(path, 'old', { mode: 0o644 });
  writeFileAtomic(path, 'new');
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(modeOf(path)).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['x']);
});

test('writeFileAtomic keeps a file with the same content and mode, and replaces it if one of them differs', () => {
  const path = join(folder, 'x');
  writeFileAtomic(path, 'same');
  const { ino } = statSync(path);
  writeFileAtomic(path, Buffer.from('same'));
  expect(statSync(path).ino).toBe(ino);
  writeFileAtomic(path, 'same', 0o644);
  expect(modeOf(path)).toBe(0o644);
  writeFileAtomic(path, 'some', 0o644);
  expect(readFileSync(path, 'utf8')).toBe('some');
});

test('a failed writeFileAtomic leaves the old content and no temporary file', () => {
  const path = join(folder, 'x');
  ensurePrivateFolder(path);
  expect(() => writeFileAtomic(path, 'new')).toThrow(expect.objectContaining({ path }));
  expect(readdirSync(folder)).toEqual(['x']);
});

test('readTextIfPresent returns undefined for a missing file, and for a path below a file', () => {
  writeFileSync(join(folder, 'file'), '');
  expect(readTextIfPresent(join(folder, 'file', 'none'))).toBeUndefined();
  expect(readTextIfPresent(join(folder, 'none'))).toBeUndefined();
});

test('a named pipe in the place of the lock file stops no command', () => {
  execFileSync('mkfifo', [join(folder, 'lock')]);
  expect(dataDirOwner(folder)).toBeUndefined();
  expect(() => lockDataDir(folder)).toThrow(`${folder}/lock is not a regular file: remove it`);
});

test('the error for a locked data folder names the process that holds the lock', () => {
  const lock = lockDataDir(folder);
  expect(dataDirOwner(folder)).toBe(process.pid);
  expect(() => lockDataDir(folder)).toThrow(
    `the data folder ${folder} is in use by a running lifepod (PID ${process.pid}): choose another --data-dir`,
  );
  lock.release();
  expect(dataDirOwner(folder)).toBeUndefined();
  lockDataDir(folder).release();
});

test('a lock of lifepod down is not reported as a running engine', () => {
  const lock = lockDataDir(folder, 'down');
  const refusal = `lifepod (PID ${process.pid}) is cleaning up after the engine of ${folder}: wait until it has finished`;
  expect(() => dataDirOwner(folder)).toThrow(refusal);
  expect(() => lockDataDir(folder)).toThrow(refusal);
  lock.release();
  expect(dataDirOwner(folder)).toBeUndefined();
});

test('checking the lock of a data folder does not prevent others from taking it', async () => {
  lockDataDir(folder).release();
  const looking = spawn('flock', ['--shared', join(folder, 'lock'), 'sh', '-c', 'echo looking; sleep 0.3'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(looking.stdout, 'data');
  expect(dataDirOwner(folder)).toBeUndefined();
  const lock = lockDataDir(folder);
  expect(dataDirOwner(folder)).toBe(process.pid);
  lock.release();
});

test('kill -9 of the owner releases the data folder even if a child of the owner still runs', async () => {
  const script = `
    import { execFileSync, spawn } from 'node:child_process';
    import { lockDataDir } from ${JSON.stringify(join(import.meta.dirname, 'files.ts'))};
    lockDataDir(process.argv[1]);
    const child = spawn('sleep', ['60'], { stdio: 'ignore', detached: true });
    process.stdout.write(String(child.pid));
    process.stdin.resume();
  `;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [childPid] = (await once(owner.stdout, 'data')) as [Buffer];
  try {
    expect(dataDirOwner(folder)).toBe(owner.pid);
    const released = dataDirReleased(folder, AbortSignal.timeout(30_000));
    owner.kill('SIGKILL');
    await released;
    expect(dataDirOwner(folder)).toBeUndefined();
    lockDataDir(folder).release();
  } finally {
    owner.kill('SIGKILL');
    process.kill(Number(childPid.toString()), 'SIGKILL');
  }
});

const waiterOf = (process: number | 'self'): number | undefined =>
  readdirSync(`/proc/${process}/task`)
    .flatMap((task) => (readTextIfPresent(`/proc/${process}/task/${task}/children`) ?? '').trim().split(' '))
    .filter((pid) => readTextIfPresent(`/proc/${pid}/cmdline`)?.startsWith('flock\0--shared'))
    .map(Number)[0];

test('dataDirReleased keeps waiting if a signal kills the command that waits for the lock', async () => {
  const lock = lockDataDir(folder);
  const released = dataDirReleased(folder, AbortSignal.timeout(30_000));
  const first = await vi.waitUntil(() => waiterOf('self'), { interval: 1, timeout: 30_000 });
  process.kill(first, 'SIGINT');
  await vi.waitUntil(() => ![undefined, first].includes(waiterOf('self')), { interval: 1, timeout: 30_000 });
  lock.release();
  await released;
});

test('the command that waits for the lock ends with the process that has started it, also after kill -9', async () => {
  const lock = lockDataDir(folder);
  const script = `
    import { dataDirReleased } from ${JSON.stringify(join(import.meta.dirname, 'files.ts'))};
    await dataDirReleased(process.argv[1], new AbortController().signal);
  `;
  const waiting = spawn(process.execPath, ['--input-type=module', '-e', script, folder], { stdio: 'inherit' });
  try {
    const command = await vi.waitUntil(() => waiterOf(waiting.pid ?? 0), { interval: 1, timeout: 30_000 });
    waiting.kill('SIGKILL');
    const hasEnded = (): boolean => (readTextIfPresent(`/proc/${command}/cmdline`) ?? '') === '';
    await vi.waitUntil(hasEnded, { interval: 1, timeout: 30_000 });
  } finally {
    waiting.kill('SIGKILL');
    lock.release();
  }
});

test('dataDirReleased rejects when its signal aborts', async () => {
  const lock = lockDataDir(folder);
  const abort = new AbortController();
  const released = dataDirReleased(folder, abort.signal);
  abort.abort();
  await expect(released).rejects.toThrow(/abort/i);
  lock.release();
});

test('dataDirOwner of a missing folder is undefined and does not create the folder', () => {
  expect(dataDirOwner(join(folder, 'none'))).toBeUndefined();
  expect(existsSync(join(folder, 'none'))).toBe(false);
});
