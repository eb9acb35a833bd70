/** Composes the configuration file of lifepod's private containerd, in format version 2, which containerd 1.6 to 2.x can read. */
import { MAX_RESPONSE_BYTES } from '../cri/connection.ts';
import type { ContainerdPaths } from './paths.ts';

export interface ConfigOptions {
  sandboxImage: string;
  cniConfDir: string;
  cniBinDir: string;
  /**
   * Whether containerd raises an oom_score_adj below its own score to its own score. Required without CAP_SYS_RESOURCE: the kernel would
   * refuse a lower score, and the creation of sandboxes would fail.
   */
  restrictOomScoreAdj: boolean;
  /**
   * The runtime handlers in addition to runc, by name: the path of a program with runc's command line, or the type of a shim, such as
   * io.containerd.kata.v2.
   */
  runtimeHandlers?: Readonly<Record<string, string>>;
}

/** lifepod does not use these plugins. containerd starts faster without them. */
const DISABLED_PLUGINS = [
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.blockfile',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.devmapper',
  'io.containerd.snapshotter.v1.erofs',
  'io.containerd.snapshotter.v1.native',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.internal.v1.opt',
  'io.containerd.internal.v1.restart',
  'io.containerd.internal.v1.tracing',
  'io.containerd.monitor.v1.cgroups',
  'io.containerd.nri.v1.nri',
  'io.containerd.tracing.processor.v1.otlp',
];

/**
 * How long a starting containerd waits for the shims of running containers. With the defaults of 5 s and 2 s, containerd on a busy machine
 * treats shims that answer late as dead or unknown, so Pods would lose their sandboxes when containerd restarts.
 */
const TIMEOUTS = { 'io.containerd.timeout.shim.load': '20s', 'io.containerd.timeout.task.state': '10s' };

/** A TOML basic string supports all escapes that JSON.stringify() writes. */
const text = (value: string): string => JSON.stringify(value);

export function containerdConfig(paths: ContainerdPaths, options: ConfigOptions): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = ${text(paths.root)}
state = ${text(paths.state)}
disabled_plugins = [${DISABLED_PLUGINS.map(text).join(', ')}]

[grpc]
  address = ${text(paths.socket)}
  max_send_message_size = ${MAX_RESPONSE_BYTES}

[debug]
  level = "warn"

[timeouts]
${Object.entries(TIMEOUTS)
  .map(([name, value]) => `  ${text(name)} = ${text(value)}`)
  .join('\n')}

[${cri}]
  sandbox_image = ${text(options.sandboxImage)}
  restrict_oom_score_adj = ${options.restrictOomScoreAdj}
  # Exec, attach and port-forward are served only on loopback, on a free port. Each URL has a token that is valid once.
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  # Network namespaces are mounted in the state folder, so that lifepod finds and unmounts them when it clears this folder.
  netns_mounts_under_state_dir = true

[${cri}.cni]
  conf_dir = ${text(options.cniConfDir)}
  bin_dir = ${text(options.cniBinDir)}

[${cri}.registry]
  config_path = ${text(paths.registries.join(':'))}

[${cri}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"

[${cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[${cri}.containerd.runtimes.runc.options]
  SystemdCgroup = false
  Root = ${text(paths.runcRoot)}
${Object.entries(options.runtimeHandlers ?? {})
  .map(([name, runtime]) => handlerConfig(`${cri}.containerd.runtimes.${text(name)}`, runtime, paths))
  .join('')}`;
}

const handlerConfig = (table: string, runtime: string, paths: ContainerdPaths): string =>
  runtime.startsWith('/')
    ? `
[${table}]
  runtime_type = "io.containerd.runc.v2"

[${table}.options]
  BinaryName = ${text(runtime)}
  SystemdCgroup = false
  Root = ${text(paths.runcRoot)}
`
    : `
[${table}]
  runtime_type = ${text(runtime)}
`;
