/**
 * The paths of a private containerd. Data that must survive a reboot is in <dataDir>/containerd; the rest (sockets, mounts, the
 * state of running tasks) is in a run folder.
 */
import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';

/** containerd refuses longer socket paths (sys.CreateUnixSocket); it creates a second socket with this suffix. */
const LONGEST_SOCKET_PATH = 104;
const SECOND_SOCKET_SUFFIX = '.ttrpc';

export interface ContainerdPaths {
  /** Configuration, logs and all images and snapshots. */
  home: string;
  config: string;
  log: string;
  root: string;
  /** Folders with a subfolder for each registry that contains its hosts.toml; the first folder that has one applies. */
  registries: readonly string[];
  /** Empty once nothing runs. */
  run: string;
  socket: string;
  state: string;
  runcRoot: string;
  /** Contains the ID of the boot in which `run` was filled. */
  bootId: string;
}

/** The run folder is <dataDir>/run, or a folder under /run if the path of a socket in <dataDir>/run would be too long. */
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
  };
}
