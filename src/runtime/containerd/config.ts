/** containerd's configuration file (version 2, which 1.6 to 2.x read) for lifepod's private instance. */
import { MAX_RESPONSE_BYTES } from '../cri/connection.ts';
import type { ContainerdPaths } from './paths.ts';

export interface ConfigOptions {
  sandboxImage: string;
  cniConfDir: string;
  cniBinDir: string;
  /** Without CAP_SYS_RESOURCE no process may lower an oom_score_adj, and the creation of sandboxes would fail. */
  restrictOomScoreAdj: boolean;
  /** By handler name: the path of a program that runs containers like runc, or the type of a shim. */
  runtimeHandlers?: Readonly<Record<string, string>>;
}

/** Plugins that lifepod does not use; each slows down the start. */
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

/** A TOML basic string, which has the escapes of JSON. */
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

[${cri}]
  sandbox_image = ${text(options.sandboxImage)}
  restrict_oom_score_adj = ${options.restrictOomScoreAdj}
  # Exec, attach and port-forward: only on loopback, on any free port; each URL has a token that is valid once.
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  # Network namespaces are mounted in the state folder: one folder then shows everything that is left.
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
