/**
 * Makes images from programs that are installed on the machine, for use without a registry: busybox from the package busybox-static, and
 * the sandbox image from the package catatonit.
 */
import { readFileSync } from 'node:fs';
import { UserError } from '../../platform/files.ts';
import { requireProgram, runCommandOk } from '../../platform/processes.ts';
import { installAdvice } from '../../platform/programs/packages.ts';
import { type Entry, writeImageArchive } from './archive-writer.ts';

const PATH_VARIABLE = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const USERS: [name: string, uid: number, gid: number, home: string, shell: string][] = [
  ['root', 0, 0, '/root', '/bin/sh'],
  ['daemon', 1, 1, '/usr/sbin', '/bin/false'],
  ['bin', 2, 2, '/bin', '/bin/false'],
  ['sys', 3, 3, '/dev', '/bin/false'],
  ['mail', 8, 8, '/var/spool/mail', '/bin/false'],
  ['www-data', 33, 33, '/var/www', '/bin/false'],
  ['nobody', 65534, 65534, '/home', '/bin/false'],
];
const passwd = USERS.map(([name, uid, gid, home, shell]) => `${name}:x:${uid}:${gid}:${name}:${home}:${shell}\n`).join(
  '',
);
const group = USERS.map(([name, , gid]) => `${name}:x:${gid}:\n`).join('');

const folder = (path: string, mode = 0o755): Entry => ({ type: 'directory', path: `${path}/`, mode });
const file = (path: string, content: string): Entry => ({ type: 'file', path, mode: 0o644, content });

/**
 * Writes the archive of an image like the public busybox image: every applet in /bin, and the usual users and folders. `reference`: the
 * complete name or names, such as docker.io/library/busybox:1.28. Rejects with a UserError if busybox is not installed or needs shared
 * libraries.
 */
export async function makeBusyboxArchive(
  outFile: string,
  { reference }: { reference: string | readonly string[] },
): Promise<void> {
  const busybox = requireProgram('busybox');
  const program = readFileSync(busybox);
  if (isDynamic(program))
    throw new UserError(`${busybox} needs shared libraries: ${installAdvice(['busybox-static'])}`);
  const applets = (await runCommandOk(busybox, ['--list'])).split('\n').filter((name) => name !== '');
  const entries: Entry[] = [
    folder('bin'),
    { type: 'file', path: 'bin/busybox', mode: 0o755, content: program },
    ...applets
      .filter((name) => name !== 'busybox')
      .map((name): Entry => ({ type: 'link', path: `bin/${name}`, target: 'bin/busybox' })),
    folder('dev'),
    folder('etc'),
    file('etc/group', group),
    // This file makes programs look up host names in /etc/hosts before DNS. Without it, some programs query DNS even for localhost.
    file('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    file('etc/passwd', passwd),
    folder('home'),
    folder('root', 0o700),
    folder('tmp', 0o1777),
    folder('usr'),
    folder('usr/bin'),
    { type: 'symlink', path: 'usr/bin/env', target: '../../bin/env' },
    folder('usr/sbin'),
    folder('var'),
    folder('var/spool'),
    folder('var/spool/mail'),
    folder('var/www'),
  ];
  await writeImageArchive(outFile, reference, entries, { command: ['sh'], env: [PATH_VARIABLE] });
}

/**
 * Writes the archive of the image for Pod sandboxes. A sandbox's process is catatonit, which only reaps other processes. `reference`: the
 * complete name. Rejects with a UserError if catatonit is not installed.
 */
export async function makePauseArchive(outFile: string, { reference }: { reference: string }): Promise<void> {
  const program = readFileSync(requireProgram('catatonit'));
  const entries: Entry[] = [{ type: 'file', path: 'pause', mode: 0o755, content: program }];
  await writeImageArchive(outFile, reference, entries, { entrypoint: ['/pause', '-P'], env: [PATH_VARIABLE] });
}

/** The first 4 KiB of a dynamically linked ELF program contain the path of the dynamic loader. */
const isDynamic = (program: Buffer): boolean => program.subarray(0, 4096).includes('/ld-');
