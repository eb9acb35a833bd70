import { describe, expect } from 'vitest';
import { pod, SHARED, WAIT } from '../support/manifests.ts';
import { lifepod, test } from '../support/shared-engine.ts';

const waitFor = (name: string, what: string): Promise<void> => lifepod.wait(`--for=${what}`, `pod/${name}`);
const statusOf = async (name: string): Promise<Record<string, never>> =>
  (await lifepod.get<{ status: Record<string, never> }>('pod', name)).status;
/** Resolves with the values that kubectl prints in the column STATUS, without repetition. */
async function shownUntil(name: string, status: string): Promise<string[]> {
  const column = (line: string): string => line.split(/ {2,}/)[2] ?? '';
  const lines = await lifepod.until(['get', 'pod', name, '-w'], (line) => column(line) === status);
  const shown = lines.slice(1).map(column);
  return shown.filter((entry, index) => entry !== shown[index - 1]);
}
const finished = async (name: string): Promise<void> => {
  await lifepod.delete('pod', name, '--now', '--wait=false');
};

test('init containers run one after the other, and the app containers start after all of them have succeeded', async () => {
  const step = (name: string): { name: string; script: string } => ({
    name,
    script: `echo ${name} begin >>/work/log; [ "$(wc -l </work/log)" -gt 0 ]; usleep 200000; echo ${name} end >>/work/log`,
    ...SHARED.mount,
  });
  await lifepod.apply(
    pod('ordered', {
      init: [step('one'), step('two'), step('three')],
      app: [
        { name: 'app-a', script: `cat /work/log; ${WAIT}`, ...SHARED.mount },
        { name: 'app-b', script: WAIT },
      ],
      spec: { volumes: SHARED.volumes },
    }),
  );
  await waitFor('ordered', 'condition=Ready');
  expect(await lifepod.kubectlOk('logs', 'ordered', '-c', 'app-a')).toBe(
    'one begin\none end\ntwo begin\ntwo end\nthree begin\nthree end\n',
  );
  const { initContainerStatuses, containerStatuses, conditions } = (await statusOf('ordered')) as unknown as {
    initContainerStatuses: { state: { terminated: { startedAt: string; finishedAt: string } } }[];
    containerStatuses: { state: { running: { startedAt: string } } }[];
    conditions: { type: string; status: string }[];
  };
  const lastEnd = initContainerStatuses[2]?.state.terminated.finishedAt ?? '';
  for (const app of containerStatuses) expect(app.state.running.startedAt >= lastEnd).toBe(true);
  expect(Object.fromEntries(conditions.map(({ type, status }) => [type, status]))).toMatchObject({
    Initialized: 'True',
    Ready: 'True',
    ContainersReady: 'True',
    PodScheduled: 'True',
  });
  await finished('ordered');
});

test('a failing init container is retried after 10 s, shows Init:CrashLoopBackOff, and logs --previous prints its previous run', async () => {
  await lifepod.apply(
    pod('stubborn', {
      init: [
        {
          name: 'fails',
          script: 'n=$(cat /work/n 2>/dev/null || echo 0); echo $((n+1)) >/work/n; echo try $n; [ $n -ge 2 ]',
          ...SHARED.mount,
        },
        { name: 'after', script: 'true' },
      ],
      spec: { volumes: SHARED.volumes },
    }),
  );
  const shown = await shownUntil('stubborn', 'Running');
  expect(shown).toContain('Init:CrashLoopBackOff');
  expect(shown).toContain('Init:1/2');
  const { initContainerStatuses } = (await statusOf('stubborn')) as unknown as {
    initContainerStatuses: {
      restartCount: number;
      state: { terminated: { startedAt: string } };
      lastState: { terminated: { finishedAt: string; exitCode: number } };
    }[];
  };
  expect(initContainerStatuses[0]).toMatchObject({
    restartCount: 2,
    lastState: { terminated: { exitCode: 1, reason: 'Error' } },
  });
  const waited =
    Date.parse(initContainerStatuses[0]?.state.terminated.startedAt ?? '') -
    Date.parse(initContainerStatuses[0]?.lastState.terminated.finishedAt ?? '');
  // Times in a status are rounded down to whole seconds.
  expect(waited).toBeGreaterThanOrEqual(9_000);
  expect(waited).toBeLessThanOrEqual(13_000);
  expect(await lifepod.kubectlOk('logs', 'stubborn', '-c', 'fails')).toBe('try 2\n');
  expect(await lifepod.kubectlOk('logs', 'stubborn', '-c', 'fails', '--previous')).toBe('try 1\n');
  const events = await lifepod.kubectlOk(
    'get',
    'events',
    '--field-selector=involvedObject.name=stubborn,reason=BackOff',
  );
  expect(events).toMatch(
    new RegExp(
      `Warning +BackOff +pod/stubborn +Back-off restarting failed container fails in pod stubborn_${lifepod.namespace}\\(`,
    ),
  );
  await finished('stubborn');
});

test('with restartPolicy Never, a failing init container fails the Pod, and no later container runs', async () => {
  await lifepod.apply(
    pod('never', {
      init: [
        { name: 'fails', script: 'exit 7' },
        { name: 'unreached', script: 'true' },
      ],
      spec: { restartPolicy: 'Never' },
    }),
  );
  await waitFor('never', 'jsonpath={.status.phase}=Failed');
  expect(await lifepod.kubectlOk('get', 'pod', 'never')).toMatch(/^never +0\/1 +Init:Error +0 /m);
  const status = await statusOf('never');
  expect(status).toMatchObject({
    phase: 'Failed',
    initContainerStatuses: [
      { name: 'fails', state: { terminated: { exitCode: 7, reason: 'Error' } } },
      { name: 'unreached', state: { waiting: { reason: 'PodInitializing' } } },
    ],
    containerStatuses: [{ name: 'app', state: { waiting: { reason: 'PodInitializing' } } }],
  });
  await finished('never');
});

test('a Pod whose init container runs is Pending, with Initialized False, and its apps wait with PodInitializing', async () => {
  await lifepod.apply(pod('pending', { init: [{ name: 'waits', script: WAIT }] }));
  await waitFor('pending', 'jsonpath={.status.initContainerStatuses[0].state.running}');
  const status = (await statusOf('pending')) as unknown as { conditions: object[] };
  expect(status).toMatchObject({
    phase: 'Pending',
    containerStatuses: [{ ready: false, started: false, state: { waiting: { reason: 'PodInitializing' } } }],
  });
  expect(status.conditions).toContainEqual(
    expect.objectContaining({
      type: 'Initialized',
      status: 'False',
      reason: 'ContainersNotInitialized',
      message: 'containers with incomplete status: [waits]',
    }),
  );
  await finished('pending');
});

test('activeDeadlineSeconds includes the time that init containers run', async () => {
  await lifepod.apply(pod('late', { init: [{ name: 'waits', script: WAIT }], spec: { activeDeadlineSeconds: 2 } }));
  await waitFor('late', 'jsonpath={.status.phase}=Failed');
  expect(await statusOf('late')).toMatchObject({
    reason: 'DeadlineExceeded',
    message: 'Pod was active on the node longer than the specified deadline',
  });
  await finished('late');
});

test.each([
  ['Never', 'exit 0', 'Succeeded', 'Completed'],
  ['Never', 'exit 3', 'Failed', 'Error'],
  ['OnFailure', 'exit 0', 'Succeeded', 'Completed'],
])(
  'with restartPolicy %s, a Pod whose app runs `%s` ends in the phase %s',
  async (restartPolicy, script, phase, shown) => {
    const name = `ends-${restartPolicy.toLowerCase()}-${phase.toLowerCase()}`;
    await lifepod.apply(pod(name, { app: [{ name: 'app', script }], spec: { restartPolicy } }));
    await waitFor(name, `jsonpath={.status.phase}=${phase}`);
    expect(await lifepod.kubectlOk('get', 'pod', name)).toMatch(new RegExp(`^${name} +0/1 +${shown} +0 `, 'm'));
    await finished(name);
  },
);

test.each([
  ['Always', 'exit 0'],
  ['OnFailure', 'exit 1'],
])('restartPolicy %s restarts an app that runs `%s`, but not the init containers', async (restartPolicy, end) => {
  const name = `again-${restartPolicy.toLowerCase()}`;
  await lifepod.apply(
    pod(name, {
      init: [{ name: 'once', script: 'echo ran >>/work/init', ...SHARED.mount }],
      app: [
        {
          name: 'app',
          script: `[ -e /work/second ] && { cat /work/init; ${WAIT}; }; touch /work/second; ${end}`,
          ...SHARED.mount,
        },
      ],
      spec: { restartPolicy, volumes: SHARED.volumes },
    }),
  );
  await waitFor(name, 'jsonpath={.status.containerStatuses[0].restartCount}=1');
  await waitFor(name, 'condition=Ready');
  expect(await lifepod.kubectlOk('logs', name, '-c', 'app')).toBe('ran\n');
  await finished(name);
});

test('kubectl get shows CrashLoopBackOff for a Pod whose app keeps failing', async () => {
  await lifepod.apply(pod('crashing', { app: [{ name: 'app', script: 'exit 1' }] }));
  await shownUntil('crashing', 'CrashLoopBackOff');
  await finished('crashing');
});

describe('validation', () => {
  const app = { name: 'app', image: 'busybox:1.28' };
  const probe = { exec: { command: ['true'] } };
  test.each<[string, Record<string, unknown>, string[]]>([
    [
      'a container without a name',
      { initContainers: [{ image: 'x' }], containers: [app] },
      ['spec.initContainers[0].name: Required value'],
    ],
    ['a container without an image', { containers: [{ name: 'app' }] }, ['spec.containers[0].image: Required value']],
    ['no containers', { containers: [] }, ['spec.containers: Required value']],
    [
      'two containers with the same name',
      { initContainers: [app], containers: [app] },
      ['spec.initContainers[0].name: Duplicate value: "app"'],
    ],
    [
      'a probe on an init container',
      { initContainers: [{ ...app, name: 'i', readinessProbe: probe }], containers: [app] },
      [
        'spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
      ],
    ],
    [
      'a hook on an init container',
      { initContainers: [{ ...app, name: 'i', lifecycle: { preStop: probe } }], containers: [app] },
      ['spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always'],
    ],
    [
      'an unknown restartPolicy',
      { restartPolicy: 'Sometimes', containers: [app] },
      ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
    ],
    [
      'an activeDeadlineSeconds of 0',
      { activeDeadlineSeconds: 0, containers: [app] },
      ['spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive'],
    ],
    [
      'a mount of a missing volume',
      { containers: [{ ...app, volumeMounts: [{ name: 'none', mountPath: '/x' }] }] },
      ['spec.containers[0].volumeMounts[0].name: Not found: "none"'],
    ],
    [
      'several invalid fields',
      { restartPolicy: 'Sometimes', initContainers: [{ image: 'x' }], containers: [{ name: 'A_b', image: 'x' }] },
      [
        'spec.restartPolicy: Unsupported value',
        'spec.initContainers[0].name: Required value',
        'spec.containers[0].name: Invalid value: "A_b"',
      ],
    ],
  ])('a Pod with %s is rejected with every field error', async (_problem, spec, messages) => {
    const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'wrong' }, spec };
    const result = await lifepod.kubectlInput(JSON.stringify(manifest), 'create', '-f', '-');
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('The Pod "wrong" is invalid');
    for (const message of messages) expect(result.stderr).toContain(message);
    expect((await lifepod.kubectl('get', 'pod', 'wrong')).code).toBe(1);
  });
});
