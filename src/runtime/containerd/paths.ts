/**
 * Determines the paths of a private containerd's files. Data that must survive a reboot is in <dataDir>/containerd. Sockets, mounts and the
 * state of running tasks are in a run folder.
 */
import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';

/** In bytes. containerd refuses longer paths (sys.CreateUnixSocket). */
const LONGEST_SOCKET_PATH = 104;
/** The suffix that containerd appends to the path of its socket for its second socket. */
const SECOND_SOCKET_SUFFIX = '.ttrpc';

export interface ContainerdPaths {
  /** The folder of the configuration, the logs and all images and snapshots. */
  home: string;
  config: string;
  log: string;
  root: string;
  /** Folders that contain, for each configured registry, a subfolder with a hosts.toml. The first folder with the subfolder applies. */
  registries: readonly string[];
  /** The run folder: nothing in it is needed after a reboot. */
  run: string;
  socket: string;
  state: string;
  runcRoot: string;
  /** A file with the ID of the boot during which the run folder was created. */
  bootId: string;
  /** A file with the time at which PID 1 had started when the run folder was created. Older versions do not write this file. */
  initStart: string;
}

/** The containerd namespace that contains CRI's objects. Calls to containerd's own services must specify a namespace. */
export const CRI_NAMESPACE = 'k8s.io';

/** The run folder is <dataDir>/run or, if a socket path in it would be too long, under /run. */
export function containerdPaths(dataDir: string): ContainerdPaths {
  const home = join(resolve(dataDir), 'containerd');
  const near = join(resolve(dataDir), 'run');
  const fits = Buffer.byteLength(join(near, 'containerd.sock') + SECOND_SOCKET_SUFFIX) <= LONGEST_SOCKET_PATH;
  const digest = createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 16);
  const run = fits ? near : join('/run/lifepod', digest);
  return {
    home,
    config: join(home, 'config.toml'),
    log: join(home, 'containerd.log'),
    root: join(home, 'root'),
    registries: [join(resolve(dataDir), 'certs.d'), '/etc/containerd/certs.d'],
    run,
    socket: join(run, 'containerd.sock'),
    state: join(run, 'containerd'),
    runcRoot: join(run, 'runc'),
    bootId: join(run, 'boot-id'),
    initStart: join(run, 'init-start'),
  };
}
