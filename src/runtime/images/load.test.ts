/** Uses a script in place of ctr, and a server that stores only the names of images. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { UserError } from '../../platform/files.ts';
import type { Timers } from '../../platform/platform.ts';
import { requireProgram } from '../../platform/processes.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { RuntimeCallError } from '../cri/connection.ts';
import { readArchive } from './archive-reader.ts';
import { writeImageArchive } from './archive-writer.ts';
import { containerd, serveContainerd } from './containerd-fixture.ts';
import { type LoadStep, loadImageArchives } from './load.ts';

// Test files share the loaded modules, so this file loads its own copies, and the next file loads the original modules.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock('../../platform/processes.ts');
  vi.resetModules();
});
vi.mock('../../platform/processes.ts', { spy: true });

const A = 'docker.io/library/a:1';
const B = 'example.com/b:1';
const never = new AbortController().signal;
/** The start and the end of a program may take seconds on a loaded machine. */
const LOADED_MACHINE = { timeout: 30_000 };

let folder: string;
let endpoint: string;
let runtime: ReturnType<typeof containerd>;
let server: { close(): void };
/** A method fails if its full name ends with one of these texts. */
let failing: string[];
/** Decides for each call whether it fails as after the end of the runtime. */
let runtimeHasEnded: (method: string) => boolean;
/** Each delay of the load calls the next function and sets the clock forward by the result, or by a minute if no function is left. */
let steps: (() => number)[];
let timers: Timers;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-load-'));
  endpoint = `unix://${path('c.sock')}`;
  runtime = containerd({});
  failing = [];
  runtimeHasEnded = () => false;
  steps = [];
  timers = steppedTimers();
  server = await serveContainerd(endpoint, runtime.connection, (method) => {
    assignNames();
    if (runtimeHasEnded(method)) throw new RuntimeCallError('Unavailable', 'Connection dropped');
    if (failing.some((end) => method.endsWith(end))) throw new Error(`${method} fails`);
  });
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const path = (name: string): string => join(folder, name);
const load = (files: string[], signal = never): Promise<string[]> =>
  loadImageArchives({ endpoint, timers }, files, signal);

function steppedTimers(): Timers {
  const virtual = createVirtualTimers();
  return {
    now: virtual.now,
    at(time, callback) {
      setImmediate(() => virtual.suspend(steps.shift()?.() ?? 60_000));
      return virtual.at(time, callback);
    },
  };
}

/**
 * Reads the file `names` that the script has written: in each line, a name and a digest, followed by "before CRI" if CRI has not processed
 * the name yet.
 */
function assignNames(): void {
  if (!existsSync(path('names'))) return;
  for (const line of readFileSync(path('names'), 'utf8').trim().split('\n')) {
    const [name = '', digest = '', unprocessed] = line.split(' ');
    const names = { [name]: digest };
    Object.assign(runtime.names, unprocessed === undefined ? withIds(names) : names);
  }
  rmSync(path('names'));
}

/** CRI adds these names. */
const withIds = (names: Record<string, string>): Record<string, string> => ({
  ...names,
  ...Object.fromEntries(Object.values(names).map((digest) => [`sha256:${digest}`, digest])),
});

/**
 * Installs a script as ctr. `imports` are its commands for an import. The content of the digest `index` is an index of two platforms, one
 * of which is missing; other digests are manifests of images.
 */
function installCtr(imports: string): void {
  const script = `#!/bin/sh
cd ${folder}
echo "$*" >> calls
case $6 in
import) ${imports} ;;
get) case $7 in
  index) echo '{"manifests":[{"digest":"missing"},{"digest":"present"}]}' ;;
  missing) exit 1 ;;
  present) echo '{"config":{"digest":"sha256:index"}}' ;;
  *) echo "{\\"config\\":{\\"digest\\":\\"sha256:$7\\"}}" ;;
  esac ;;
esac
`;
  writeFileSync(path('ctr'), script);
  chmodSync(path('ctr'), 0o755);
}
/** The commands read the whole archive and assign the name to the digest. */
const importOf = (name: string, digest = 'new'): string => `cat > stdin; echo '${name} ${digest}' >> names`;

/** Omits the address and the namespace. */
const ctrCalls = (): string[] => {
  const begin = `--address ${path('c.sock')} --namespace k8s.io images `;
  const lines = readFileSync(path('calls'), 'utf8').trimEnd().split('\n');
  expect(lines.filter((line) => !line.startsWith(begin))).toEqual([]);
  return lines.map((line) => line.slice(begin.length));
};

async function archiveOf(name: string, file = 'image.tar', bytes = 1): Promise<string> {
  const content = { type: 'file', path: 'file', mode: 0o644, content: Buffer.alloc(bytes) } as const;
  await writeImageArchive(path(file), name, [content], { env: [] });
  return path(file);
}

async function archiveWith(files: Record<string, unknown>): Promise<void> {
  const tar = pack();
  for (const [name, content] of Object.entries(files)) tar.entry({ name }, JSON.stringify(content));
  tar.finalize();
  writeFileSync(path('image.tar'), await buffer(tar));
}

async function rejection(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    (value) => new Error(`resolved with ${value}`),
    (error: Error) => error,
  );
}

test('the load of an archive fails with the name of the package if ctr is not installed', async () => {
  const missing = new UserError(`the command 'ctr' is missing: run 'apt-get install containerd'`);
  vi.mocked(requireProgram).mockImplementationOnce(() => {
    throw missing;
  });
  expect(await rejection(load([await archiveOf('a:1')]))).toBe(missing);
  expect(requireProgram).toHaveBeenLastCalledWith('ctr');
});

test('the load imports each archive in order and returns the complete references', async () => {
  const files = [await archiveOf(A, 'a.tar'), await archiveOf(B, 'b.tar')];
  installCtr(`if [ -e stdin ]; then ${importOf(B)}; else ${importOf(A)}; cp stdin first; fi`);
  expect(await load(files)).toEqual([A, B]);
  expect(ctrCalls()).toEqual(['import -', 'import -']);
  expect(readFileSync(path('first'))).toEqual(readFileSync(path('a.tar')));
  expect(readFileSync(path('stdin'))).toEqual(readFileSync(path('b.tar')));
  expect(runtime.names).toEqual(withIds({ [A]: 'new', [B]: 'new' }));
  // The names are new, so no image needs protection.
  expect(runtime.calls).toEqual([]);
});

test('a load deletes the short form of a name that it assigns', async () => {
  Object.assign(runtime.names, withIds({ [A]: 'old', 'a:1': 'old', 'b:1': 'old' }));
  installCtr(importOf(A));
  expect(await load([await archiveOf(A)])).toEqual([A]);
  expect(runtime.names).toEqual(withIds({ [A]: 'new', 'b:1': 'old' }));
});

test('a name that an archive has in two forms is returned once', async () => {
  const manifests = [{ annotations: { 'io.containerd.image.name': A } }];
  await archiveWith({ 'manifest.json': [{ RepoTags: ['a:1'] }], 'index.json': { manifests } });
  installCtr(importOf(A));
  expect(await load([path('image.tar')])).toEqual([A]);
});

test('the load decompresses an archive before ctr reads the archive', async () => {
  const file = await archiveOf(A);
  writeFileSync(path('image.tar.gz'), gzipSync(readFileSync(file)));
  installCtr(importOf(A));
  expect(await load([path('image.tar.gz')])).toEqual([A]);
  expect(readFileSync(path('stdin'))).toEqual(readFileSync(file));
});

test('ctr reads an OCI layout with the complete names and digests, and a failed import deletes them', async () => {
  const digest = `sha256:${'0'.repeat(64)}`;
  const annotations = { 'org.opencontainers.image.ref.name': 'a:1' };
  await archiveWith({ 'oci-layout': {}, 'index.json': { manifests: [{ digest, annotations }] }, 'layer.tar': 'x' });
  const byDigest = `docker.io/library/a@${digest}`;
  installCtr(`${importOf(A)}; echo '${byDigest} new' >> names; exit $(ls failing 2> /dev/null | wc -l)`);
  expect(await load([path('image.tar')])).toEqual([A]);
  expect(ctrCalls()).toEqual(['import -']);
  expect((await readArchive(path('stdin'), never)).names).toEqual([A, byDigest]);
  expect(runtime.names).toEqual(withIds({ [A]: 'new', [byDigest]: 'new' }));

  for (const name of Object.keys(runtime.names)) delete runtime.names[name];
  writeFileSync(path('failing'), '');
  await rejection(load([path('image.tar')]));
  expect(runtime.names).toEqual({});
});

test('the images that had the names before are protected only during the import', async () => {
  Object.assign(runtime.names, withIds({ [A]: 'old' }));
  installCtr(importOf(A));
  expect(await load([await archiveOf('a:1')])).toEqual([A]);
  expect(runtime.calls).toEqual(['Leases/Create', 'hold old', 'Leases/Delete']);
});

test('a failed import restores the names and reports the error of ctr', async () => {
  Object.assign(runtime.names, withIds({ [A]: 'old' }));
  installCtr(`${importOf(A, 'broken')}; echo ' no such layer ' >&2; exit 1`);
  const file = await archiveOf(A);
  const text = `containerd does not accept the image archive ${file}: no such layer`;
  expect(await rejection(load([file]))).toEqual(new UserError(text));
  expect(runtime.names).toEqual(withIds({ [A]: 'old' }));
  const undone = [`restore ${A}`, 'delete sha256:broken'];
  expect(runtime.calls).toEqual(['Leases/Create', 'hold old', ...undone, 'Leases/Delete']);
});

test('a failed import reports the error of ctr even if the names cannot be restored', async () => {
  Object.assign(runtime.names, withIds({ [A]: 'old' }));
  failing = ['Images/Update'];
  installCtr(`${importOf(A, 'broken')}; echo 'no such layer' >&2; exit 2`);
  expect((await rejection(load([await archiveOf(A)]))).message).toMatch(/: no such layer$/);
  expect(runtime.calls.at(-1)).toBe('Leases/Delete');
});

test('an import that ends before ctr has read the whole archive reports the error of ctr', async () => {
  installCtr(`echo 'no such layer' >&2; exit 1`);
  const file = await archiveOf(A, 'large.tar', 4_000_000);
  expect((await rejection(load([file]))).message).toMatch(/: no such layer$/);
});

test('an import that a signal ends has failed', async () => {
  installCtr(`${importOf(A)}; kill -KILL $$`);
  const file = await archiveOf(A);
  const text = `the image archive ${file} was not loaded: ctr was killed; try again`;
  expect(await rejection(load([file]))).toEqual(new UserError(text));
  expect(runtime.names).toEqual({});
});

test('a failed import keeps the images of earlier archives and does not import later archives', async () => {
  const files = [await archiveOf(A, 'a.tar'), await archiveOf(B, 'b.tar'), await archiveOf(B, 'c.tar')];
  installCtr(`if [ -e stdin ]; then exit 1; else ${importOf(A)}; fi`);
  expect((await rejection(load(files))).message).toMatch(/b\.tar: ctr ended with exit code 1$/);
  expect(ctrCalls()).toEqual(['import -', 'import -']);
  expect(runtime.names).toEqual(withIds({ [A]: 'new' }));
});

test('a failed import reports the error of ctr even if the lease cannot be deleted', async () => {
  Object.assign(runtime.names, withIds({ [A]: 'old' }));
  failing = ['Leases/Delete'];
  installCtr(`echo 'no such layer' >&2; exit 2`);
  expect((await rejection(load([await archiveOf(A)]))).message).toMatch(/: no such layer$/);
});

test('an aborted import restores the names and ends the protection of the previous images', async () => {
  Object.assign(runtime.names, withIds({ [A]: 'old' }));
  installCtr(`${importOf(A, 'broken')}; touch begun; kill -STOP $$`);
  const aborting = new AbortController();
  const loading = rejection(load([await archiveOf(A)], aborting.signal));
  await vi.waitFor(() => expect(existsSync(path('begun'))).toBe(true), LOADED_MACHINE);
  aborting.abort();
  expect((await loading).name).toBe('AbortError');
  expect(runtime.names).toEqual(withIds({ [A]: 'old' }));
  expect(runtime.calls.at(-1)).toBe('Leases/Delete');
});

test('ctr runs in a session of its own, so that Ctrl+C does not prevent it from deleting its lease', async () => {
  installCtr(`cut -d ' ' -f 1,6 /proc/$$/stat > stat; ${importOf(A)}`);
  await load([await archiveOf(A)]);
  const [pid, session] = readFileSync(path('stat'), 'utf8').trim().split(' ');
  expect(session).toBe(pid);
});

test('an abort kills ctr', async () => {
  installCtr(`echo $$ > pid.new; mv pid.new pid; kill -STOP $$`);
  const aborting = new AbortController();
  const loading = rejection(load([await archiveOf(A)], aborting.signal));
  await vi.waitFor(() => expect(existsSync(path('pid'))).toBe(true), LOADED_MACHINE);
  aborting.abort();
  expect((await loading).name).toBe('AbortError');
  const pid = Number(readFileSync(path('pid'), 'utf8'));
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), LOADED_MACHINE);
});

test.each<[string, (method: string) => boolean]>([
  ['before the import', (method) => method.endsWith('ImageStatus')],
  ['after the import', () => existsSync(path('stdin'))],
])('a runtime that ends %s is named as the cause', async (_, hasEnded) => {
  installCtr(importOf(A));
  const file = await archiveOf(A);
  runtimeHasEnded = hasEnded;
  const text = `the image archive ${file} was not loaded: the container runtime ended meanwhile; start the engine again if it was stopped, and repeat the command`;
  expect(await rejection(load([file]))).toEqual(new UserError(text));
});

test('a runtime that does not answer at all is not reported as one that ended meanwhile', async () => {
  installCtr(importOf(A));
  const file = await archiveOf(A);
  server.close();
  expect((await rejection(load([file]))).message).toContain('ENOENT');
});

/** Installs a ctr that assigns no name: CRI lists the image only when a step of the test has assigned it. */
const installSlowCtr = (): void => installCtr('cat > stdin');

test('the load waits up to 30 seconds until CRI lists the image', async () => {
  installSlowCtr();
  const start = timers.now();
  const add = (): number => {
    Object.assign(runtime.names, withIds({ [A]: 'new' }));
    return 5;
  };
  steps = [() => 5, () => 29_995, add];
  expect(await load([await archiveOf(A)])).toEqual([A]);
  expect([timers.now() - start, steps]).toEqual([30_005, []]);
});

test('the load waits until CRI lists the new image of a reference that exists', async () => {
  Object.assign(runtime.names, withIds({ [A]: 'old' }));
  installCtr(importOf(A, 'new before CRI'));
  const process = (): number => {
    Object.assign(runtime.names, withIds({ [A]: 'new' }));
    return 5;
  };
  steps = [() => 5, process];
  expect(await load([await archiveOf(A)])).toEqual([A]);
  expect(steps).toEqual([]);
});

test.each(['old', 'index'])(
  'the load does not wait if the archive contains the image that CRI lists: %s',
  async (digest) => {
    Object.assign(runtime.names, withIds({ [A]: digest }));
    installCtr(importOf(A, digest));
    expect(await load([await archiveOf(A)])).toEqual([A]);
    expect(timers.now()).toBe(steppedTimers().now());
  },
);

test('the load fails if CRI does not list the image after more than 30 seconds', async () => {
  installSlowCtr();
  steps = [() => 30_001];
  const text = `the runtime does not list the image ${A} after loading it`;
  expect(await rejection(load([await archiveOf(A)]))).toEqual(new UserError(text));
  expect(steps).toEqual([]);
});

test('the load reports how much of an archive has been read, in bytes of the file', async () => {
  const plain = await archiveOf(A, 'a.tar', 300_000);
  const file = path('a.tar.gz');
  writeFileSync(file, gzipSync(readFileSync(plain)));
  installCtr(importOf(A));
  const seen: LoadStep[] = [];
  await loadImageArchives({ endpoint, timers, progress: (step) => void seen.push(step) }, [file], never);
  const totalBytes = statSync(file).size;
  expect([...new Set(seen.map(({ kind }) => kind))]).toEqual(['checking', 'loading', 'unpacking']);
  expect(seen[0]).toEqual({ kind: 'checking', file, doneBytes: 0, totalBytes });
  expect(seen.at(-1)).toEqual({ kind: 'unpacking', file, doneBytes: totalBytes, totalBytes });
});
