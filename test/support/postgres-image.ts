/**
 * Builds, once, an archive of the image postgres:15 for tests without a registry. It contains the programs of the machine's package
 * postgresql (of any version), the libraries that they need, and busybox, at the same paths as in the public image.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findProgram, runCommandOk } from '../../src/platform/processes.ts';
import { type Entry, writeImageArchive } from '../../src/runtime/images/archive-writer.ts';

const ROOT = '/usr/lib/postgresql';
const VERSION = readdirSync(ROOT).sort((a, b) => Number(b) - Number(a))[0] ?? '';
const HOME = `${ROOT}/${VERSION}`;
const PROGRAMS = ['initdb', 'pg_controldata', 'pg_ctl', 'pg_isready', 'postgres', 'psql'];
const SHARED = `/usr/share/postgresql/${VERSION}`;
const LIBRARIES = ['dict_snowball.so', 'plpgsql.so'];
const ZONES = ['Etc/UTC', 'GMT', 'UTC'].map((zone) => `/usr/share/zoneinfo/${zone}`);

export async function postgresArchive(): Promise<string> {
  const folder = join(tmpdir(), 'lifepod-test-images');
  const archive = join(folder, `postgres-${VERSION}.tar`);
  if (existsSync(archive)) return archive;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const unfinished = `${archive}.${process.pid}`;
  await writeImageArchive(unfinished, 'docker.io/library/postgres:15', await entriesOf(), {
    command: ['postgres'],
    env: [`PATH=${HOME}/bin:/usr/bin:/bin`, 'PGDATA=/var/lib/postgresql/data'],
    stopSignal: 'SIGINT',
  });
  renameSync(unfinished, archive);
  return archive;
}

async function entriesOf(): Promise<Entry[]> {
  const programs = PROGRAMS.map((name) => `${HOME}/bin/${name}`);
  const libraries = LIBRARIES.map((name) => `${HOME}/lib/${name}`);
  const files = [...programs, ...libraries, ...filesBelow(SHARED), ...ZONES];
  const needed = await Promise.all([...programs, ...libraries].map(neededBy));
  const busybox = findProgram('busybox') ?? '';
  const applets = (await runCommandOk(busybox, ['--list']))
    .split('\n')
    .filter((name) => !['', 'busybox'].includes(name));
  const all: Entry[] = [
    { type: 'file', path: 'bin/busybox', mode: 0o755, content: readFileSync(busybox) },
    ...applets.map((name): Entry => ({ type: 'link', path: `bin/${name}`, target: 'bin/busybox' })),
    text('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\npostgres:x:999:999:postgres:/var/lib/postgresql:/bin/sh\n'),
    text('etc/group', 'root:x:0:\npostgres:x:999:\n'),
    ...[...new Set([...files, ...needed.flat()])].sort().map(copied),
  ];
  const folders = new Set(['tmp/', ...all.flatMap(({ path }) => above(path))]);
  const mode = (path: string): number => (path === 'tmp/' ? 0o1777 : 0o755);
  return [...[...folders].sort().map((path): Entry => ({ type: 'directory', path, mode: mode(path) })), ...all];
}

const text = (path: string, content: string): Entry => ({ type: 'file', path, mode: 0o644, content });

/** Links are followed, so that the file exists at this path in the image. */
const copied = (path: string): Entry => ({
  type: 'file',
  path: path.slice(1),
  mode: statSync(path).mode & 0o777,
  content: readFileSync(path),
});

/** The result includes the loader. */
async function neededBy(program: string): Promise<string[]> {
  const lines = (await runCommandOk('ldd', [program])).split('\n');
  return lines.flatMap((line) => /^\s*(?:\S+ => )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => !lstatSync(path).isDirectory());

function above(path: string): string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [...above(folder), `${folder}/`];
}
