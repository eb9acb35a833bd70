/** Shell scripts for a virtual machine, and the Pod that the tests run there. */
import { cpuWeight } from '../../src/platform/control-groups/cgroups.ts';
import { pod } from '../support/manifests.ts';

export const ENDPOINT = 'unix:///run/containerd/containerd.sock';

export const PIDS_LIMIT = '--pod-pids-limit 400';

const TRACE = '/var/tmp/trace';

const FORGIVING = { timeoutSeconds: 60, periodSeconds: 1, failureThreshold: 3 };

/** These fields of the Pod and of its containers mount the folder of the trace files at /trace. */
export const traced = {
  volumes: [{ name: 'trace', hostPath: { path: TRACE, type: 'DirectoryOrCreate' } }],
  mount: { volumeMounts: [{ name: 'trace', mountPath: '/trace' }] },
};

/** The containers of the Pod `name` append lines to this file. */
export const traceOf = (name: string): string => `${TRACE}/${name}`;

const append = (name: string, line: string): string => `echo ${line} >>/trace/${name}`;

/**
 * By the kernel's file: the limits of the control group of a Pod of wholeLife(). They are the sum for two containers, because the PreExit
 * entry runs at the same time as the app container.
 */
export const LIFE_LIMITS = {
  'memory.max': String(2 * 64 * 2 ** 20),
  'cpu.max': '40000 100000',
  'cpu.weight': String(cpuWeight(204)),
  'pids.max': '400',
};

/**
 * The Pod has an init container, an app container and two defer containers. Each writes a line to the trace file, and the app container
 * writes another one when it receives SIGTERM.
 */
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

/** Prints a field of each container status in `list`. `field` is a JSONPath relative to the container status. */
export const printStatus = (name: string, list: string, field: string): string =>
  `kubectl get pod ${name} -o jsonpath='{.status.${list}[*]${field}}'; echo`;

/** Runs the commands, and then waits until the journal of the unit lifepod says that the engine is ready. */
export const untilUnitReady = (commands: string): string => `
  since=$(date +%s)
  ${commands}
  timeout 240 grep -qm 1 'is ready after' < <(exec journalctl -f -u lifepod -o cat --since "@$since" 2>/dev/null)`;

export const UNTIL_BOOTED = untilUnitReady('since=$(date -d "$(uptime -s)" +%s)');

export const untilTraced = (name: string, line: string): string =>
  `timeout 240 grep -qxm 1 '${line}' < <(exec tail -n +1 -F ${traceOf(name)} 2>/dev/null)`;

export const PRINT_LEFTOVERS = `
  pgrep -af 'containerd-shim|lifepod/src|lifepod/dist|catatonit' || true
  find /sys/fs/cgroup -type d -name '*lifepod[-_]*' -o -type d -name 'kubepods*' | grep -v 'lifepod.*\\.service$' || true
  systemctl list-units --all --plain --no-legend 'lifepod_*' 'cri-containerd-*'
  ls /run/systemd/transient /run/systemd/system 2>/dev/null | grep -E 'lifepod_|cri-containerd' || true
  grep -E '/var/lib/lifepod|/run/netns/cni-|containerd/io.containerd.runtime' /proc/self/mountinfo || true
  ip -o link | grep -E 'veth|lifepod' || true
  ls /var/lib/cni/networks/pods 2>/dev/null | grep -E '^[0-9]+\\.' || true
  ls /var/lib/cni/results 2>/dev/null | grep '^lifepod-' || true
  nft list tables | grep lifepod || true`;
