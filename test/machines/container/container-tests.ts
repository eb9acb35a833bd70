/** Tests the README's section "In a container", at any place that runs containerd. */
import { expect, test } from 'vitest';
import { pod } from '../../support/manifests.ts';
import { blocksOf } from '../readme.ts';
import type { Docker, Place } from './docker.ts';
import { type ImageConfig, type RunOptions, readRunCommand } from './instructions.ts';

/** Throws if the README has no docker run. */
export function readmeRun(): RunOptions {
  const [shell] = blocksOf('In a container').filter(({ language }) => language === 'sh');
  const command = /^docker run (?:.*\\\n)*.*$/m.exec(shell?.text ?? '')?.[0];
  if (command === undefined) throw new Error('README has no docker run');
  return readRunCommand(command);
}

/** The folder to which the Pods of the test write. It is in the volume, so that the test can read it after the end of the container. */
const TRACE = '/var/lib/lifepod/trace';
const traced = {
  volumes: [{ name: 'trace', hostPath: { path: TRACE, type: 'DirectoryOrCreate' } }],
  mount: { volumeMounts: [{ name: 'trace', mountPath: '/trace' }] },
};

const MEMORY_BYTES = 64 * 2 ** 20;
const single = pod('single', {
  app: [
    {
      name: 'app',
      script: 'trap "echo stop >>/trace/single; exit 0" TERM; while :; do sleep 3600 & wait $!; done',
      resources: { limits: { memory: String(MEMORY_BYTES) } },
      ...traced.mount,
    },
  ],
  defer: [
    { name: 'before', script: 'echo before >>/trace/single', ...traced.mount },
    { name: 'after', script: 'echo after >>/trace/single', trigger: 'PostExit', ...traced.mount },
  ],
  spec: { volumes: traced.volumes },
});

const labels = { app: 'kept' };
const { spec } = pod('kept') as { spec: object };
const kept = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'kept' },
  spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
};

export interface Subject {
  place: Place;
  docker: Docker;
  config: ImageConfig;
  run: RunOptions;
  /** The path on the machine of the archive of busybox:1.28. */
  busybox: string;
  /** The factor by which an emulated machine is slower than a real one. */
  slowness: number;
}

export function containerTests(subject: () => Subject): void {
  const kubectl = (args: string): string =>
    subject().docker.outside(`kubectl --kubeconfig ${subject().docker.volume}/../kubeconfig ${args}`);
  const inside = (command: string): Promise<string> => subject().place.ok(subject().docker.exec(command), 300);
  const outside = (args: string, input?: object): Promise<string> =>
    subject().place.ok(
      input === undefined ? kubectl(args) : `${kubectl(args)} <<'END'\n${JSON.stringify(input)}\nEND`,
      300,
    );
  const whenReady = (args: string): Promise<string> => outside(`wait --for=condition=Ready --timeout=280s ${args}`);

  test('the container starts, its health check succeeds, and kubectl outside reaches the API at the published port', async () => {
    const { docker, place, config, run, busybox } = subject();
    await docker.run();
    expect(await inside(config.healthcheck.join(' '))).toContain(`node/${run.hostname} condition met`);
    await place.ok(`${docker.exec('cat /var/lib/lifepod/kubeconfig')} >${docker.volume}/../kubeconfig`);
    expect(await outside('get nodes --no-headers')).toMatch(new RegExp(`^${run.hostname} +Ready `));
    // The test copies the archive as a user would with `docker cp`.
    await place.ok(`cp ${busybox} ${docker.volume}/busybox.tar`);
    expect(await inside('lifepod image load /var/lib/lifepod/busybox.tar')).toContain('busybox:1.28');
    expect(await inside('lifepod status')).toMatch(/unhealthy none\n$/);
  });

  test('Pods run in the container, with their limits', async () => {
    await outside('apply -f -', single);
    await outside('apply -f -', kept);
    await whenReady('pod/single');
    await outside('rollout status deployment/kept --timeout=280s');
    const limit = await outside(
      'exec single -- cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes || true',
    );
    expect(limit).toContain(String(MEMORY_BYTES));
    expect(await outside('exec single -- nslookup kubernetes.default.svc.cluster.local')).toContain('10.96.0.1');
  });

  test('the signal of docker stop terminates the Pods with their defer containers, and the container ends within the stop timeout', async () => {
    const { docker, place, run, slowness } = subject();
    expect(await docker.stop('SIGTERM', run.stopTimeoutSeconds * slowness)).toBe(0);
    expect(await place.ok(`cat ${docker.volume}/trace/single`)).toBe('before\nstop\nafter\n');
  });

  test('another container with the same volume continues', async () => {
    await subject().docker.run();
    await outside('rollout status deployment/kept --timeout=280s');
    expect(await outside('get pod single -o jsonpath={.status.phase}/{.status.reason}')).toBe('Failed/Terminated');
    await outside('delete pod single');
    await outside('apply -f -', single);
    await whenReady('pod/single');
  });

  test('after the container was killed, the Pods start again, and nothing is left when the container has ended', async () => {
    const { docker, place, run, slowness } = subject();
    await docker.stop('SIGKILL', 60);
    await docker.run();
    await whenReady('pod/single');
    await outside('rollout status deployment/kept --timeout=280s');
    await docker.stop('SIGTERM', run.stopTimeoutSeconds * slowness);
    expect(await place.ok(`tail -n 3 ${docker.volume}/trace/single`)).toBe('before\nstop\nafter\n');
    expect(await docker.leftovers()).toBe('');
  });
}
