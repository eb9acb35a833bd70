/** Uses scripts in place of the installed programs. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { extract, type Header } from 'tar-stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { installAdvice } from '../../platform/programs/packages.ts';
import { makeBusyboxArchive, makePauseArchive } from './local-images.ts';

const reference = 'docker.io/library/a:1';
const BUSYBOX = '#!/bin/sh\nprintf "[\\nbusybox\\nls\\nsh\\n"\n';
let folder: string;
let out: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-local-images-'));
  out = join(folder, 'image.tar');
  vi.stubEnv('PATH', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

function install(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}
interface TarEntry {
  header: Header;
  content: Buffer;
}
async function entriesOf(tar: Buffer): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  for await (const entry of Readable.from([tar]).pipe(extract()))
    entries.push({ header: entry.header, content: await buffer(entry) });
  return entries;
}
async function image(): Promise<{ entries: Map<string, TarEntry>; config: unknown }> {
  const [layer, config] = await entriesOf(readFileSync(out));
  const entries = await entriesOf(layer?.content ?? Buffer.alloc(0));
  const { config: settings } = JSON.parse(String(config?.content)) as { config: unknown };
  return { entries: new Map(entries.map((entry) => [entry.header.name, entry])), config: settings };
}
const ENV = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'];

test('the busybox image has the program once, and a hard link to it for each other applet', async () => {
  install('busybox', BUSYBOX);
  await makeBusyboxArchive(out, { reference });
  const { entries, config } = await image();
  expect(config).toEqual({ Env: ENV, Cmd: ['sh'] });
  expect(entries.get('bin/busybox')).toMatchObject({
    header: { type: 'file', mode: 0o755 },
    content: Buffer.from(BUSYBOX),
  });
  const links = [...entries.values()].filter(({ header }) => header.type === 'link');
  expect(links.map(({ header }) => [header.name, header.linkname])).toEqual(
    ['[', 'ls', 'sh'].map((name) => [`bin/${name}`, 'bin/busybox']),
  );
});

test('the busybox image has the usual folders, users and groups', async () => {
  install('busybox', BUSYBOX);
  await makeBusyboxArchive(out, { reference });
  const { entries } = await image();
  const folders = [...entries.values()].filter(({ header }) => header.type === 'directory');
  const modes = new Map(folders.map(({ header }) => [header.name, header.mode]));
  expect(modes).toEqual(
    new Map([
      ...[
        'bin',
        'dev',
        'etc',
        'home',
        'usr',
        'usr/bin',
        'usr/sbin',
        'var',
        'var/spool',
        'var/spool/mail',
        'var/www',
      ].map((name) => [`${name}/`, 0o755] as const),
      ['root/', 0o700],
      ['tmp/', 0o1777],
    ]),
  );
  const text = (name: string): string[] => String(entries.get(name)?.content).split('\n');
  expect(text('etc/passwd')).toHaveLength(8);
  expect(text('etc/passwd')[0]).toBe('root:x:0:0:root:/root:/bin/sh');
  expect(text('etc/passwd')[6]).toBe('nobody:x:65534:65534:nobody:/home:/bin/false');
  expect(text('etc/group')).toEqual([
    ...['root:x:0:', 'daemon:x:1:', 'bin:x:2:', 'sys:x:3:', 'mail:x:8:', 'www-data:x:33:', 'nobody:x:65534:'],
    '',
  ]);
  expect(text('etc/nsswitch.conf')).toContain('hosts: files dns');
  expect(entries.get('etc/passwd')?.header.mode).toBe(0o644);
  expect(entries.get('usr/bin/env')?.header).toMatchObject({ type: 'symlink', linkname: '../../bin/env' });
});

test('a busybox that needs shared libraries is refused, if the path of the loader is in its first 4 KiB', async () => {
  const program = install('busybox', `${BUSYBOX}# /lib64/ld-linux-x86-64.so.2\n`);
  await expect(makeBusyboxArchive(out, { reference })).rejects.toThrow(
    new UserError(`${program} needs shared libraries: ${installAdvice(['busybox-static'])}`),
  );
  install('busybox', `${BUSYBOX}${'#'.repeat(4096 - BUSYBOX.length)}/ld-`);
  await makeBusyboxArchive(out, { reference });
});

test('the sandbox image has only catatonit, which it runs as /pause -P', async () => {
  install('catatonit', 'program');
  await makePauseArchive(out, { reference });
  const { entries, config } = await image();
  expect(config).toEqual({ Env: ENV, Entrypoint: ['/pause', '-P'] });
  expect([...entries.keys()]).toEqual(['pause']);
  expect(entries.get('pause')).toMatchObject({
    header: { type: 'file', mode: 0o755 },
    content: Buffer.from('program'),
  });
});
