/**
 * Does with containerd what the commands of README's section "In a container" do with Docker: each container gets an overlay of the image,
 * the volume, and an address to which the published port leads.
 */
import type { Machine } from '../machine.ts';
import { writes } from '../readme.ts';
import type { ImageConfig, RunOptions } from './instructions.ts';
import { ociSpec } from './oci-spec.ts';

export type Place = Pick<Machine, 'run' | 'ok'>;

export interface Docker {
  /** The container gets a new overlay. Resolves when the log of lifepod says that it is ready. */
  run(): Promise<void>;
  /** Sends the signal to PID 1, and resolves with the exit code of the container. Rejects if the container still runs after `seconds`. */
  stop(signal: 'SIGTERM' | 'SIGKILL', seconds: number): Promise<number>;
  /** Returns a script that runs the command in the container, as docker exec does. */
  exec(command: string): string;
  /** Returns a script that runs the command outside the container, where the published port is. */
  outside(command: string): string;
  /** The folder of the volume on the machine. */
  volume: string;
  /** Resolves with what containers have left on the machine: mounts, processes and control groups. */
  leftovers(): Promise<string>;
  /** Also works after a failure. Deletes the network namespaces and the folder. */
  end(): Promise<void>;
}

export interface DockerOptions {
  /** A folder of the machine, on a file system that overlays can use. The names of the network namespaces begin with its name. */
  folder: string;
  image: string;
  config: ImageConfig;
  run: RunOptions;
}

const INSIDE = '172.31.255.2';
const OUTSIDE = '172.31.255.1';

const START_SECONDS = 500;

export async function startDocker(place: Place, options: DockerOptions): Promise<Docker> {
  const { folder, run } = options;
  const id = folder.split('/').at(-1) ?? '';
  const ctr = `ctr -a ${folder}/containerd.sock --connect-timeout 60s`;
  const [volume, log] = [`${folder}/volume`, `${folder}/log`];
  let containers = 0;
  const root = (): string => `${folder}/containers/${containers}`;
  const docker: Docker = {
    volume,
    async run() {
      containers++;
      const spec = await specOf(place, { ...options, root: `${root()}/merged`, id, volume });
      await place.ok(startScript({ ...options, root: root(), spec, log, ctr }), START_SECONDS);
    },
    async stop(signal, seconds) {
      const code = await place.ok(
        `
        ${ctr} task kill --signal ${signal} ${run.name}
        timeout ${seconds} tail --pid=$(cat ${root()}/pid) -f /dev/null || { tail -n 30 ${log} >&2; exit 1; }
        umount ${root()}/merged
        cat ${root()}/exit`,
        seconds + 60,
      );
      return Number(code.trim());
    },
    exec: (command) => `${ctr} task exec --exec-id exec-$$-$RANDOM ${run.name} ${command}`,
    outside: (command) => `ip netns exec ${id}-out ${command}`,
    leftovers: () =>
      place.ok(`
        grep -F ${folder}/ /proc/self/mountinfo || true
        find /sys/fs/cgroup -type d -name ${id} 2>/dev/null || true
        ip netns pids ${id}-in`),
    async end() {
      await place.run(`
        ${ctr} task kill --signal SIGKILL ${run.name} && timeout 60 tail --pid=$(cat ${root()}/pid) -f /dev/null
        kill $(cat ${folder}/containerd.pid)
        umount ${folder}/containers/*/merged
        ip netns delete ${id}-in; ip netns delete ${id}-out
        rm -rf ${folder}`);
    },
  };
  try {
    await place.ok(setUpScript({ ...options, id, volume }));
  } catch (error) {
    await docker.end();
    throw error;
  }
  return docker;
}

/** The script starts containerd. The outer network namespace has Docker's rule for a published port. */
function setUpScript({ folder, run, id, volume }: DockerOptions & { id: string; volume: string }): string {
  const [address, port, containerPort] = run.publish;
  const [inside, outside] = [`ip -n ${id}-in`, `ip -n ${id}-out`];
  return `
    mkdir -p ${folder}/containers ${volume}
    ${writes(`${folder}/containerd.toml`, containerdConfig(folder))}
    setsid containerd --config ${folder}/containerd.toml >${folder}/containerd.log 2>&1 </dev/null &
    echo $! >${folder}/containerd.pid
    ip netns add ${id}-out; ip netns add ${id}-in
    ip link add eth0 netns ${id}-in type veth peer name docker0 netns ${id}-out
    ${outside} link set lo up; ${outside} addr add ${OUTSIDE}/24 dev docker0; ${outside} link set docker0 up
    ${inside} link set lo up; ${inside} addr add ${INSIDE}/24 dev eth0; ${inside} link set eth0 up
    ${inside} route add default via ${OUTSIDE}
    ip netns exec ${id}-out sh -c 'echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet'
    ip netns exec ${id}-out nft -f - <<'RULES'
    table ip published {
      chain output { type nat hook output priority -100; ip daddr ${address} tcp dport ${port} dnat to ${INSIDE}:${containerPort}; }
      chain postrouting { type nat hook postrouting priority 100; oifname docker0 masquerade; }
    }
RULES`;
}

const containerdConfig = (folder: string): string => `version = 2
root = "${folder}/containerd/root"
state = "${folder}/containerd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "${folder}/containerd.sock"
`;

const DEVICES = "find /dev -xdev '(' -type c -o -type b ')' -exec stat -c '%n %F %t %T' '{}' +";

async function specOf(
  place: Place,
  { config, run, root, id, volume }: DockerOptions & { root: string; id: string; volume: string },
): Promise<object> {
  return ociSpec({
    config,
    run,
    root,
    volume,
    networkNamespace: `/run/netns/${id}-in`,
    cgroup: `/${id}`,
    capabilities: (await place.ok("sed -n 's/^CapEff:\\s*//p' /proc/self/status")).trim(),
    devices: await place.ok(DEVICES),
  });
}

/** The script starts the container in the background, and ends when lifepod is ready. A file gets the container's exit code. */
function startScript(options: DockerOptions & { root: string; spec: object; log: string; ctr: string }): string {
  const { image, run, root, spec, log, ctr } = options;
  return `
    mkdir -p ${root}/upper ${root}/work ${root}/merged
    mount -t overlay overlay -o lowerdir=${image},upperdir=${root}/upper,workdir=${root}/work ${root}/merged
    echo 'nameserver 192.0.2.53' >${root}/merged/etc/resolv.conf
    printf '127.0.0.1 localhost\\n${INSIDE} ${run.hostname}\\n' >${root}/merged/etc/hosts
    ${writes(`${root}/config.json`, `${JSON.stringify(spec)}\n`)}
    (code=0; ${ctr} run --rm --config ${root}/config.json ${run.name} || code=$?; echo $code >${root}/exit) >${log} 2>&1 </dev/null &
    echo $! >${root}/pid
    grep -q -m 1 'is ready after' <(tail --pid=$! -n +1 -f ${log}) || { cat ${log} >&2; exit 1; }`;
}
