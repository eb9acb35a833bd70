import { type Case, container, explains, status, terminated, waiting } from './explain-fixtures.ts';

const START = 'OCI runtime create failed: runc create failed: unable to start container process: ';
const NO_GROUP = `${START}unable to apply cgroup configuration: mkdir /sys/fs/cgroup/memory/p/1: cannot allocate memory: unknown`;
const KILLED = `${START}container init was OOM-killed (memory limit too low?): unknown`;
const SET = `${START}error during container init: unable to set memory limit to 512 (current usage: 2420736, peak usage: 2531328): unknown`;

const limited = (name: string, memory: string) => container(name, { resources: { limits: { memory } } });
const sandbox = (
  message: string,
  ...containers: ReturnType<typeof limited>[]
): Pick<Case, 'spec' | 'status' | 'steps'> => ({
  spec: { containers },
  status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
  steps: [[5, 'SandboxFailed', { message }]],
});

explains({
  'a sandbox for which the memory limit in thousandths of a byte is too low': {
    ...sandbox(NO_GROUP, limited('app', '128m')),
    sentence:
      'p waits: its sandbox cannot be created, because its memory limit of 128m is too low for the container runtime to start a process.',
    advice: /^raise its memory limit of 128m \(m means a thousandth of a byte, [^)]+\), and recreate the Pod$/,
  },
  'a sandbox for which the memory limits of all containers together are too low': {
    ...sandbox(KILLED, limited('app', '64k'), limited('more', '64k')),
    sentence:
      'p waits: its sandbox cannot be created, because the memory limits of its containers, 128k in total, are too low for the container runtime to start a process.',
    advice: /^raise the memory limits of its containers, 128k in total, and recreate the Pod$/,
  },
  'a sandbox that cannot be created although the memory limit suffices': {
    ...sandbox(NO_GROUP, limited('app', '1Gi')),
    sentence: /^p waits: its sandbox cannot be created, OCI runtime create failed/,
    advice: /^wait: /,
  },
  'a container that other memory of its Pod or of the machine keeps from starting': {
    spec: { containers: [limited('app', '256Mi')], restartPolicy: 'Never' },
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(128, 'StartError', KILLED) })] },
    sentence: /^p has failed: container app cannot be started, OCI runtime create failed: .* init was OOM-killed/,
  },
  'a sandbox that no memory limit affects': {
    ...sandbox(NO_GROUP, limited('app', '1k'), container('more')),
    sentence: /^p waits: its sandbox cannot be created, OCI runtime create failed/,
    advice: /^wait: /,
  },
  'a container that cannot start within its memory limit': {
    spec: { containers: [limited('app', '512'), container('more')], restartPolicy: 'Never' },
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(128, 'StartError', SET) })] },
    sentence:
      'p has failed: container app cannot be started: its memory limit of 512 is too low for the container runtime to start a process.',
    advice: /^raise its memory limit of 512, and recreate the Pod$/,
  },
});
