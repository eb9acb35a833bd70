import { expect, test } from 'vitest';
import { containerWeights } from '../support/control-groups.ts';
import { pod } from '../support/manifests.ts';
import type { Machine } from './machine.ts';
import { apply, LIFE_LIMITS, printStatus, traceOf, untilReady, wholeLife } from './scripts.ts';

const MEBIBYTE = 2 ** 20;
const ENDED = 8;

export const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

/** The script sets $group to the folder of the Pod's control group. */
const findGroup = (name: string): string => `
  uid=$(kubectl get pod ${name} -o jsonpath='{.metadata.uid}')
  group=$(find /sys/fs/cgroup -type d -path '*lifepod*' \\( -name "*pod$uid" -o -name "*pod\${uid//-/_}.slice" \\))`;

/** The script prints the limits in the order of LIFE_LIMITS, one per line. */
const printLimits = (name: string): string => `${findGroup(name)}
  cd "$group"; for file in ${Object.keys(LIFE_LIMITS).join(' ')}; do cat $file; done`;

export function podTests(machine: () => Machine): void {
  test(`the ends of ${ENDED} Pods that exit immediately are all reported`, async () => {
    const pods = names('short', ENDED).map((name) =>
      pod(name, { labels: { set: 'short' }, app: [{ name: 'app', script: 'true' }], spec: { restartPolicy: 'Never' } }),
    );
    await machine().ok(`${apply(...pods)}
      kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod -l set=short --timeout=240s >/dev/null
      kubectl delete pod -l set=short >/dev/null`);
  });

  limitTest(machine, 'life');

  test('a failing liveness probe restarts the container', async () => {
    await machine().ok(`
      touch ${traceOf('life')}.sick
      kubectl wait --for=jsonpath='{.status.containerStatuses[0].restartCount}'=1 pod/life --timeout=240s >/dev/null
      rm ${traceOf('life')}.sick
      ${untilReady('life')}`);
    expect(await machine().ok(`cat ${traceOf('life')}`)).toBe('init\napp\nstop\napp\n');
  });

  outOfMemoryTest(machine, ENDED);

  test('a Pod is evicted under memory pressure', async () => {
    const volumes = [{ name: 'memory', emptyDir: { medium: 'Memory' } }];
    const script = 'dd if=/dev/zero of=/memory/file bs=1M count=1200; sleep 3600';
    const hog = pod('hog', {
      app: [{ name: 'app', script, volumeMounts: [{ name: 'memory', mountPath: '/memory' }] }],
      spec: { volumes, terminationGracePeriodSeconds: 1 },
    });
    const out = await machine().ok(`${apply(hog)}
      kubectl wait --for=jsonpath='{.status.phase}'=Failed pod/hog --timeout=240s >/dev/null
      kubectl get pod hog -o jsonpath='{.status.reason}: {.status.message}'
      kubectl delete pod hog >/dev/null
      kubectl wait --for=condition=MemoryPressure=False node/machine --timeout=120s >/dev/null`);
    expect(out).toMatch(/^Evicted: The node was low on resource: memory/);
    expect(await machine().ok(printStatus('life', 'containerStatuses', '.restartCount'))).toBe('1\n');
  });
}

export function limitTest(machine: () => Machine, name: string): void {
  test(`the limits of the Pod ${name} are in the files of cgroup v2`, async () => {
    await machine().ok(`${apply(wholeLife(name))}\n${untilReady(name)}`, 400);
    const limits = async () => (await machine().ok(printLimits(name))).trim().split('\n');
    expect(await limits()).toEqual(Object.values(LIFE_LIMITS));
    // After a reload, systemd writes the properties of its units to the files of the control groups again.
    await machine().ok('systemctl daemon-reload');
    expect(await limits()).toEqual(Object.values(LIFE_LIMITS));
    const ofContainers = `${findGroup(name)}\nfor each in "$group"/*/; do cat "$each/memory.max" "$each/cpu.weight"; done`;
    const [app, sandbox] = [containerWeights(102), containerWeights(2)];
    const known = [String(64 * MEBIBYTE), ...app, 'max', ...sandbox];
    const values = (await machine().ok(ofContainers)).trim().split('\n');
    expect(values).toContain(String(64 * MEBIBYTE));
    expect(known).toEqual(expect.arrayContaining(values));
  });
}

export function outOfMemoryTest(machine: () => Machine, count: number): void {
  test(`${count} containers that use up their memory at the same time end as OOMKilled`, async () => {
    const greedy = names('greedy', count).map((name) =>
      pod(name, {
        labels: { set: 'greedy' },
        app: [{ name: 'app', script: 'tail /dev/zero', resources: { limits: { memory: '16Mi' } } }],
        spec: { restartPolicy: 'Never' },
      }),
    );
    const reasons = await machine().ok(`${apply(...greedy)}
      kubectl wait --for=jsonpath='{.status.phase}'=Failed pod -l set=greedy --timeout=240s >/dev/null
      kubectl get pods -l set=greedy -o jsonpath='{.items[*].status.containerStatuses[0].state.terminated.reason}'
      kubectl delete pod -l set=greedy >/dev/null`);
    expect(reasons.split(' ')).toEqual(greedy.map(() => 'OOMKilled'));
  });
}
