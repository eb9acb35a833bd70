/** Scripts for the shell of a virtual machine: they wait for events, and print what a test compares. */
import { cpuWeight } from '../../src/platform/cgroups.ts';
import { pod } from '../support/manifests.ts';

export const ENDPOINT = 'unix:///run/containerd/containerd.sock';

/** The limit of processes per Pod. */
export const PIDS_LIMIT = '--pod-pids-limit 400';

/** The folder of the machine that containers write their lines to. */
const TRACE = '/var/tmp/trace';

const FORGIVING = { timeoutSeconds: 60, periodSeconds: 1, failureThreshold: 3 };

/** Parts for the spec of a Pod and for a container of it, which mount a folder of the machine at /trace. */
export const traced = {
  volumes: [{ name: 'trace', hostPath: { path: TRACE, type: 'DirectoryOrCreate' } }],
  mount: { volumeMounts: [{ name: 'trace', mountPath: '/trace' }] },
};

/** The file of the machine to which containers of the Pod `name` append. */
export const traceOf = (name: string): string => `${TRACE}/${name}`;

const append = (name: string, line: string): string => `echo ${line} >>/trace/${name}`;

/** The contents of the limit files of such a Pod's control group; the PreExit entry runs at the same time as the app. */
export const LIFE_LIMITS = {
  'memory.max': String(2 * 64 * 2 ** 20),
  'cpu.max': '40000 100000',
  'cpu.weight': String(cpuWeight(204)),
  'pids.max': '400',
};

/** A Pod with a whole life: each container writes a line to the trace, the app another one when it receives SIGTERM. */
export function wholeLife(name: string): object {
  const resources = { requests: { cpu: '100m', memory: '32Mi' }, limits: { cpu: '200m', memory: '64Mi' } };
  const own = (container: string, script: string) => ({ name: container, script, resources, ...traced.mount });
  return pod(name, {
    init: [own('init', append(name, 'init'))],
    app: [
      {
        ...own(
          'app',
          `trap "${append(name, 'stop')}; exit 0" TERM; ${append(name, 'app')}; while :; do sleep 3600 & wait $!; done`,
        ),
        readinessProbe: { exec: { command: ['test', '-s', `/trace/${name}`] }, ...FORGIVING },
        livenessProbe: {
          exec: { command: ['test', '!', '-e', `/trace/${name}.sick`] },
          ...FORGIVING,
          failureThreshold: 1,
        },
      },
    ],
    defer: [own('before', append(name, 'before')), { ...own('after', append(name, 'after')), trigger: 'PostExit' }],
    spec: { volumes: traced.volumes, terminationGracePeriodSeconds: 120 },
  });
}

export const apply = (...items: object[]): string =>
  `kubectl apply -f - >/dev/null <<'MANIFESTS'\n${JSON.stringify({ apiVersion: 'v1', kind: 'List', items })}\nMANIFESTS`;

export const untilReady = (name: string): string =>
  `kubectl wait --for=condition=Ready pod/${name} --timeout=240s >/dev/null`;

/** Prints a field of each container status in `list`; `field` is a JSON path of kubectl below the status. */
export const printStatus = (name: string, list: string, field: string): string =>
  `kubectl get pod ${name} -o jsonpath='{.status.${list}[*]${field}}'; echo`;

/** Runs the commands; ends once the journal of the unit says that the engine is ready. */
export const untilUnitReady = (commands: string): string => `
  since=$(date +%s)
  ${commands}
  timeout 240 grep -qm 1 'is ready after' < <(exec journalctl -f -u lifepod -o cat --since "@$since" 2>/dev/null)`;

/** Prints whatever is left of lifepod and its Pods on the machine; prints nothing if nothing is. */
export const PRINT_LEFTOVERS = `
  pgrep -af 'containerd-shim|lifepod/src|lifepod/dist|catatonit' || true
  find /sys/fs/cgroup -type d -name '*lifepod[-_]*' -o -type d -name 'kubepods*' | grep -v 'lifepod.*\\.service$' || true
  systemctl list-units --all --plain --no-legend 'lifepod_*' 'cri-containerd-*'
  ls /run/systemd/transient /run/systemd/system 2>/dev/null | grep -E 'lifepod_|cri-containerd' || true
  grep -E '/var/lib/lifepod|/run/netns/cni-|containerd/io.containerd.runtime' /proc/self/mountinfo || true
  ip -o link | grep -E 'veth|lifepod' || true
  ls /var/lib/cni/networks/pods 2>/dev/null | grep -E '^[0-9]+\\.' || true`;
