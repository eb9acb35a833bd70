/**
 * Returns the OCI runtime specification of a container that `docker run --privileged` would start. Docker's differs where it does not
 * matter to lifepod: host names of other containers, and devices other than those listed here.
 * Source: OCI runtime specification, and Docker's documents of `docker run`.
 */
import type { ImageConfig, RunOptions } from './instructions.ts';

export interface SpecOptions {
  config: ImageConfig;
  run: RunOptions;
  /** A path on the machine, as is `volume`. */
  root: string;
  volume: string;
  networkNamespace: string;
  /** The capabilities of the machine's root, as a hexadecimal number: CapEff of /proc/self/status. */
  capabilities: string;
  /** The devices of the machine, in lines of `stat -c '%n %F %t %T'`. */
  devices: string;
  cgroup: string;
}

/** In the order of their numbers. Source: linux/capability.h. */
const CAPABILITIES =
  `CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
  NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE
  SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM
  BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`
    .split(/\s+/)
    .map((name) => `CAP_${name}`);

const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const mount = (destination: string, type: string, ...options: string[]): object => ({
  destination,
  type,
  source: type,
  options,
});

export function ociSpec(options: SpecOptions): object {
  const { config, run, root, volume, networkNamespace } = options;
  const granted = BigInt(`0x${options.capabilities}`);
  const capabilities = CAPABILITIES.filter((_, number) => (granted & (1n << BigInt(number))) !== 0n);
  if (!run.isPrivileged || run.cgroupNamespace !== 'private') throw new Error('the container must be privileged');
  if (!config.volumes.includes(run.volume[1])) throw new Error(`the image has no volume ${run.volume[1]}`);
  const namespaces = ['pid', 'ipc', 'uts', 'mount', 'cgroup'].map((type) => ({ type }));
  return {
    ociVersion: '1.0.2',
    hostname: run.hostname,
    root: { path: root },
    process: {
      cwd: '/',
      args: config.entrypoint,
      env: [PATH, `HOSTNAME=${run.hostname}`, 'HOME=/root', ...config.env],
      user: { uid: 0, gid: 0 },
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    mounts: [
      mount('/proc', 'proc', 'nosuid', 'noexec', 'nodev'),
      mount('/dev', 'tmpfs', 'nosuid', 'strictatime', 'mode=755', 'size=65536k'),
      mount('/dev/pts', 'devpts', 'nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'),
      mount('/dev/shm', 'tmpfs', 'nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k'),
      mount('/dev/mqueue', 'mqueue', 'nosuid', 'noexec', 'nodev'),
      mount('/sys', 'sysfs', 'nosuid', 'noexec', 'nodev', 'rw'),
      mount('/sys/fs/cgroup', 'cgroup', 'nosuid', 'noexec', 'nodev', 'rw'),
      { destination: run.volume[1], type: 'bind', source: volume, options: ['rbind', 'rw', 'rprivate'] },
    ],
    linux: {
      cgroupsPath: options.cgroup,
      namespaces: [...namespaces, { type: 'network', path: networkNamespace }],
      devices: devicesOf(options.devices),
      resources: { devices: [{ allow: true, access: 'rwm' }] },
      rootfsPropagation: 'private',
    },
  };
}

/** The runtime creates these devices in every container. */
const DEFAULT_DEVICES = /^\/dev\/(null|zero|full|random|urandom|tty|console|ptmx)$/;

const devicesOf = (lines: string): object[] =>
  lines
    .split('\n')
    .map((line) => /^(\S+) (block|character) special file (\w+) (\w+)$/.exec(line))
    .filter((match) => match !== null)
    .filter(([, path = '']) => !DEFAULT_DEVICES.test(path))
    .map(([, path, kind, major = '', minor = '']) => ({
      path,
      type: kind === 'block' ? 'b' : 'c',
      major: Number.parseInt(major, 16),
      minor: Number.parseInt(minor, 16),
      fileMode: 0o660,
      uid: 0,
      gid: 0,
    }));
