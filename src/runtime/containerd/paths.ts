/**
 * Where a private containerd keeps its things. What must outlive a reboot stands in <dataDir>/containerd, what must not
 * (sockets, mounts, the state of running tasks) in a run folder.
 */
import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';

/** containerd refuses longer socket paths (sys.CreateUnixSocket); it makes a second socket with this ending. */
const LONGEST_SOCKET_PATH = 104;
const SECOND_SOCKET_SUFFIX = '.ttrpc';

export interface ContainerdPaths {
  /** Configuration, logs and all images and snapshots. */
  home: string;
  config: string;
  log: string;
  root: string;
  /** Folders with a folder for each registry, in it its hosts.toml; the first that has it counts. */
  registries: readonly string[];
  /** Empty once nothing runs. */
  run: string;
  socket: string;
  state: string;
  runcRoot: string;
  /** The boot in which `run` was filled. */
  bootId: string;
}

/** The run folder is <dataDir>/run, or one under /run where a socket in it would have too long a path. */
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
