import type { Timers } from '../../platform/platform.ts';
import type {
  ContainerConfig,
  ContainerObservation,
  PodObservation,
  SandboxConfig,
  SandboxObservation,
} from '../runtime.ts';
import { type Cause, type Run, type Runs, SIGKILL_EXIT } from './runs.ts';

export interface RecordOptions {
  timers: Timers;
  runs: Runs;
  /** Returns the address of the sandbox with this number; absent: 10.0.x.y. */
  podIp?: (serial: number) => string;
  /** Called after a sandbox of the Pod has been ended or removed. */
  changed(podUid: string): void;
}

export interface Records {
  readonly sandboxes: ReadonlyMap<string, SandboxObservation>;
  runSandbox(config: SandboxConfig): string;
  createContainer(sandboxId: string, config: ContainerConfig): string;
  stopSandbox(id: string): void;
  removeSandbox(id: string): void;
  removeContainer(id: string): void;
  /** Ends the sandbox and its running containers, and keeps their records. */
  endSandbox(sandbox: SandboxObservation, cause: Cause): void;
  observe(podUid: string): PodObservation;
  podUids(): Set<string>;
}

/** The exit code that containerd reports for a process whose exit it does not know. */
const UNKNOWN_EXIT = 255;

const defaultIp = (serial: number): string => `10.0.${serial >> 8}.${serial & 255}`;

export function createRecords({ timers, runs, podIp = defaultIp, changed }: RecordOptions): Records {
  const { containers, trace } = runs;
  const sandboxes = new Map<string, SandboxObservation>();
  let serial = 0;

  const endSandbox = (sandbox: SandboxObservation, cause: Cause): void => {
    for (const run of containers.values())
      if (run.sandboxId === sandbox.id) runs.end(run, cause === 'reboot' ? UNKNOWN_EXIT : SIGKILL_EXIT, cause);
    sandbox.ready = false;
    changed(sandbox.podUid);
  };
  const isDamaged = ({ damagedUntil }: Run): boolean => damagedUntil !== undefined && damagedUntil > timers.now();

  return {
    sandboxes,
    endSandbox,
    runSandbox({ pod: { uid, namespace, name }, attempt }) {
      for (const each of sandboxes.values()) if (each.podUid === uid && each.attempt === attempt) return each.id;
      const id = `sandbox-${++serial}`;
      const ips = [podIp(serial)];
      const createdAt = timers.now();
      sandboxes.set(id, { id, podUid: uid, namespace, name, attempt, ready: true, createdAt, ips });
      trace.push({ at: createdAt, what: 'sandbox', id, podUid: uid, name: '', attempt, sandboxId: id });
      return id;
    },
    createContainer(sandboxId, config) {
      const { pod, name, attempt } = config;
      for (const each of containers.values())
        if (each.podUid === pod.uid && each.name === name && each.attempt === attempt) return each.id;
      if (sandboxes.get(sandboxId)?.ready !== true) throw new Error(`sandbox ${sandboxId} is not ready`);
      const id = `container-${++serial}`;
      containers.set(id, createdRun(id, sandboxId, config, timers));
      return id;
    },
    stopSandbox(id) {
      const sandbox = sandboxes.get(id);
      if (sandbox !== undefined) endSandbox(sandbox, 'sandbox');
    },
    removeSandbox(id) {
      const sandbox = sandboxes.get(id);
      if (sandbox === undefined) return;
      endSandbox(sandbox, 'sandbox');
      const contained = [...containers.values()].filter(({ sandboxId }) => sandboxId === id);
      if (contained.some(isDamaged)) return;
      for (const run of contained) runs.remove(run);
      sandboxes.delete(id);
      changed(sandbox.podUid);
    },
    removeContainer(id) {
      const run = containers.get(id);
      if (run !== undefined && !isDamaged(run)) runs.remove(run);
    },
    observe: (podUid) => ({
      sandboxes: [...sandboxes.values()].filter((each) => each.podUid === podUid).map((each) => ({ ...each })),
      containers: [...containers.values()].filter((each) => each.podUid === podUid).map(plain),
    }),
    podUids: () => new Set([...sandboxes.values(), ...containers.values()].map(({ podUid }) => podUid)),
  };
}

function createdRun(id: string, sandboxId: string, config: ContainerConfig, timers: Timers): Run {
  const { pod, name, kind, attempt, imageName, imageId, annotations } = config;
  return {
    id,
    sandboxId,
    pod,
    podUid: pod.uid,
    name,
    kind,
    attempt,
    image: imageName,
    imageId,
    annotations,
    state: 'created',
    createdAt: timers.now(),
  };
}

function plain(run: Run): ContainerObservation {
  const {
    pod: _pod,
    ending: _ending,
    signalled: _signalled,
    abandoned: _abandoned,
    damagedUntil: _until,
    ...seen
  } = run;
  return seen;
}
