/**
 * Builds the root file system of the image that the Dockerfile describes, without Docker: mmdebstrap makes Debian's base image, and the
 * instructions run in it with chroot.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { runCommand, runCommandOk } from '../../../src/platform/processes.ts';
import { REPOSITORY } from '../../support/lifepod.ts';
import { type ImageConfig, type Instruction, imageConfig, readStages, type Stage } from './instructions.ts';

export const DOCKERFILE = readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8');

/** The stages begin with this image. The group matches the release of Debian. */
const BASE = /^debian:(\w+)-slim$/;

const MIRROR_MILLIS = 20_000;

/** Resolves with the mirror of Debian that the machine's apt uses; undefined if it uses none, or if the mirror does not answer. */
export async function debianMirror(): Promise<string | undefined> {
  const targets = ['indextargets', '--format', '$(SITE)', 'Created-By: Packages'];
  const { stdout } = await runCommand('apt-get', targets).catch(() => ({ stdout: '' }));
  const mirror = stdout.split('\n').find((site) => /\/debian\/?$/.test(site));
  if (mirror === undefined) return undefined;
  const [release] = readStages(DOCKERFILE).map(({ from }) => BASE.exec(from)?.[1]);
  const signal = AbortSignal.timeout(MIRROR_MILLIS);
  const answer = await fetch(`${mirror}/dists/${release}/InRelease`, { method: 'HEAD', signal }).catch(() => undefined);
  return answer?.ok === true ? mirror : undefined;
}

/** Expired package lists are accepted, because a mirror may serve an old snapshot. */
async function makeBase(release: string, folder: string, mirror: string): Promise<void> {
  await runCommandOk('mmdebstrap', [
    ...['--quiet', '--mode=root', '--variant=minbase', '--format=directory'],
    ...['--aptopt=Acquire::Check-Valid-Until "false"', '--aptopt=Acquire::Check-Date "false"'],
    ...['--aptopt=Acquire::Languages "none"', '--aptopt=Acquire::Retries "3"'],
    // Debian's base images have this setting, too.
    '--dpkgopt=force-unsafe-io',
    ...['man', 'doc', 'locale'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
    ...[release, folder, `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror} ${release} main`],
  ]);
}

/** Builds the image in `folder`. Rejects if a base image is not Debian's, or if an instruction fails. */
export async function buildImage(folder: string, mirror: string): Promise<{ root: string; config: ImageConfig }> {
  const stages = readStages(DOCKERFILE);
  const roots = new Map<string, string>();
  let root = '';
  for (const [index, stage] of stages.entries()) {
    root = join(folder, `stage-${index}`);
    if (stage.name !== undefined) roots.set(stage.name, root);
    const base = join(folder, stage.from.replace(':', '-'));
    const release = BASE.exec(stage.from)?.[1];
    if (release === undefined) throw new Error(`the base image ${stage.from} is not Debian's`);
    if (!existsSync(base)) await makeBase(release, base, mirror);
    await runCommandOk('cp', ['-a', base, root]);
    await runStage(stage, root, roots);
  }
  const last = stages.at(-1);
  if (last === undefined) throw new Error('the Dockerfile has no stage');
  return { root, config: imageConfig(last) };
}

async function runStage({ instructions }: Stage, root: string, roots: ReadonlyMap<string, string>): Promise<void> {
  let workdir = '/';
  for (const { kind, text } of instructions) {
    if (kind === 'WORKDIR') {
      workdir = text;
      mkdirSync(join(root, workdir), { recursive: true });
    } else if (kind === 'COPY') copy({ kind, text }, join(root, workdir), root, roots);
    else if (kind === 'RUN') await runIn(root, workdir, text);
  }
}

/** With these files of this machine, programs in the root file system reach the network as this machine does. */
const NETWORK_FILES = ['/etc/resolv.conf', '/etc/hosts'];

/** The certificates that Node.js trusts on this machine in addition to its own, such as those of a proxy. */
const AUTHORITIES = process.env['NODE_EXTRA_CA_CERTS'];

/** Runs the command in namespaces of its own, so that its processes and mounts end with it. */
async function runIn(root: string, workdir: string, command: string): Promise<void> {
  for (const file of NETWORK_FILES) copyFileSync(file, join(root, file));
  const script = `
    mount -t proc proc ${root}/proc && mount -t sysfs -o ro sys ${root}/sys && mount -t tmpfs tmp ${root}/tmp &&
    mount --rbind /dev ${root}/dev && cp ${AUTHORITIES ?? '/dev/null'} ${root}/tmp/authorities.crt &&
    exec chroot ${root} sh -c 'cd "$1" && exec sh -c "$2"' - "$1" "$2"`;
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child'];
  await runCommandOk('unshare', [...namespaces, 'sh', '-c', script, '-', workdir, command], {
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      ...(AUTHORITIES === undefined ? {} : { NODE_EXTRA_CA_CERTS: '/tmp/authorities.crt' }),
      ...(await npmSettings()),
    },
  });
}

/** npm then uses the same registry as on this machine. */
async function npmSettings(): Promise<Record<string, string>> {
  return { npm_config_registry: (await runCommandOk('npm', ['config', 'get', 'registry'])).trim() };
}

/** Copies from the repository, or with --from from an earlier stage. Throws if there is no such stage. */
function copy({ text }: Instruction, workdir: string, root: string, roots: ReadonlyMap<string, string>): void {
  const words = text.split(/\s+/);
  const stage = /^--from=(.*)$/.exec(words[0] ?? '')?.[1];
  if (stage !== undefined) words.shift();
  const target = words.pop() ?? '';
  const folder = target.startsWith('/') ? join(root, target) : join(workdir, target);
  const source = stage === undefined ? REPOSITORY : roots.get(stage);
  if (source === undefined) throw new Error(`there is no stage ${stage}`);
  const isSent = stage === undefined ? sentFiles() : () => true;
  for (const word of words) {
    const from = join(source, word);
    // From the repository, a path is copied into the target folder, and `.` onto it. From a stage, a path is copied onto the target.
    const to = word === '.' || stage !== undefined ? folder : join(folder, word);
    cpSync(from, to, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => path === from || isSent(relative(source, path)),
    });
  }
}

/**
 * Returns a function that returns whether the .dockerignore lets Docker send a path to the builder. The last pattern that matches decides.
 */
export function sentFiles(): (path: string) => boolean {
  const patterns = readFileSync(join(REPOSITORY, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return (path) => {
    const folders = path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));
    let isSent = true;
    for (const pattern of patterns) {
      const name = pattern.replace(/^!/, '');
      if (folders.some((each) => (name === '*' ? !each.includes('/') : each === name)))
        isSent = pattern.startsWith('!');
    }
    return isSent;
  };
}
