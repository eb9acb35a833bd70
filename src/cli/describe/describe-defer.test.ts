import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DeferContainer, Pod, PodSpec, PodStatus } from '../../api/generated/types.ts';
import { deferSection, insertDeferSection } from './describe-defer.ts';

const zone = process.env['TZ'];
beforeAll(() => {
  process.env['TZ'] = 'Asia/Kolkata';
});
afterAll(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

const pod = (
  deferContainers: DeferContainer[] | undefined,
  status: PodStatus = {},
  spec: Partial<PodSpec> = {},
): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'shard-0', namespace: 'data' },
  spec: { containers: [], ...spec, deferContainers },
  status,
});
const text = (described: Pod): string => deferSection(described).join('\n');
const status = { name: 'bye', image: 'tools:1', imageID: 'sha256:1', ready: false, restartCount: 0 };

test('describe shows no section for a Pod without defer containers', () => {
  expect(deferSection(pod(undefined))).toEqual([]);
  expect(deferSection(pod([]))).toEqual([]);
});

test('describe shows the fields of a defer container and that it waits while its Pod runs', () => {
  const container: DeferContainer = { name: 'bye', image: 'tools:1', command: ['sh', '-c', 'one\ntwo'], args: ['x'] };
  const statuses = [{ ...status, state: { waiting: { reason: 'PodRunning' } } }];
  expect(text(pod([container], { deferContainerStatuses: statuses }))).toBe(`\
Defer Containers:
  bye:
    Container ID:    
    Image:           tools:1
    Image ID:        sha256:1
    Port:            <none>
    Host Port:       <none>
    Trigger:         PreExit
    Restart Policy:  Never
    Timeout:         <none>
    Command:
      sh
      -c
      one
      two
    Args:
      x
    State:          Waiting
      Reason:       PodRunning
    Ready:          False
    Restart Count:  0
    Environment:    <none>
    Mounts:         <none>
Effective Requests:  <none>
Effective Limits:    <none>`);
});

const full: DeferContainer = {
  name: 'bye',
  image: 'tools:1',
  trigger: 'PostExit',
  restartPolicy: 'OnFailure',
  timeoutSeconds: 20,
  ports: [
    { containerPort: 80, protocol: 'TCP' },
    { containerPort: 53, hostPort: 5353, protocol: 'UDP', name: 'dns' },
  ],
  securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'p.json' } },
  resources: { limits: { memory: '64Mi', cpu: '100m' }, requests: { cpu: '50m' } },
  livenessProbe: { exec: { command: ['test', '-e', '/x'] }, periodSeconds: 5, timeoutSeconds: 1, failureThreshold: 3 },
  envFrom: [{ configMapRef: { name: 'settings' } }, { prefix: 'S_', secretRef: { name: 'keys', optional: true } }],
  env: [
    { name: 'PLAIN', value: 'one\ntwo' },
    { name: 'POD', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } },
    { name: 'REASON', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.termination.reason' } } },
    { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
    { name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'k' } } },
    { name: 'LEVEL', valueFrom: { configMapKeyRef: { name: 'settings', key: 'level', optional: true } } },
  ],
  volumeMounts: [
    { name: 'work', mountPath: '/work', subPath: 'a b' },
    { name: 'data', mountPath: '/data', readOnly: true },
  ],
  volumeDevices: [{ name: 'disk', devicePath: '/dev/x' }],
};

test('describe shows every field of a defer container and the result of its previous attempt', () => {
  const terminated = {
    exitCode: 3,
    reason: 'Error',
    message: 'no',
    startedAt: '2026-01-31T20:00:00Z',
    finishedAt: '2026-01-31T20:00:01Z',
  };
  const states = {
    containerID: 'containerd://2',
    restartCount: 1,
    state: { running: { startedAt: '2026-01-31T20:00:02Z' } },
    lastState: { terminated },
  };
  expect(text(pod([full], { deferContainerStatuses: [{ ...status, ...states }] }))).toBe(`\
Defer Containers:
  bye:
    Container ID:        containerd://2
    Image:               tools:1
    Image ID:            sha256:1
    Ports:               80/TCP, 53/UDP
    Host Ports:          0/TCP, 5353/UDP
    SeccompProfile:      Localhost
      LocalhostProfile:  p.json
    Trigger:             PostExit
    Restart Policy:      OnFailure
    Timeout:             20s
    State:               Running
      Started:           Sun, 01 Feb 2026 01:30:02 +0530
    Last State:          Terminated
      Reason:            Error
      Message:           no
      Exit Code:         3
      Started:           Sun, 01 Feb 2026 01:30:00 +0530
      Finished:          Sun, 01 Feb 2026 01:30:01 +0530
    Ready:               False
    Restart Count:       1
    Limits:
      cpu:     100m
      memory:  64Mi
    Requests:
      cpu:     50m
    Liveness:  exec [test -e /x] delay=0s timeout=1s period=5s #success=0 #failure=3
    Environment Variables from:
      settings  ConfigMap                Optional: false
      keys      Secret with prefix 'S_'  Optional: true
    Environment:
      PLAIN:   one
               two
      POD:     shard-0 (v1:metadata.name)
      REASON:   (v1:status.termination.reason)
      CPU:     100 (limits.cpu)
      KEY:     <set to the key 'k' in secret 'keys'>              Optional: false
      LEVEL:   <set to the key 'level' of config map 'settings'>  Optional: true
    Mounts:
      /data from data (ro)
      /work from work (rw,path="a b")
    Devices:
      /dev/x from disk
Effective Requests:      cpu=50m, memory=64Mi
Effective Limits:        cpu=100m, memory=64Mi
Post Exit Grace Period:  at most 15s (default)`);
});

test('describe shows imageFrom with the image that it resolves to, onReasons, when and failurePolicy', () => {
  const entry: DeferContainer = {
    name: 'bye',
    imageFrom: 'db',
    trigger: 'PostExit',
    when: 'Succeeded',
    failurePolicy: 'FailPod',
    onReasons: ['ScaledDown', 'Completed'],
  };
  const containers = [{ name: 'db', image: 'postgres:15' }];
  expect(text(pod([entry], {}, { containers }))).toContain(`
    Image:           postgres:15
    Port:            <none>
    Host Port:       <none>
    Image From:      db
    Trigger:         PostExit
    Restart Policy:  Never
    Timeout:         <none>
    On Reasons:      ScaledDown, Completed
    When:            Succeeded
    Failure Policy:  FailPod
`);
});

test('describe shows the highest effective request of containers that run at the same time', () => {
  const cpu = (amount: string) => ({ resources: { requests: { cpu: amount } } });
  const entries: DeferContainer[] = [
    { name: 'before', ...cpu('200m') },
    { name: 'after', trigger: 'PostExit', ...cpu('250m') },
  ];
  const described = text(pod(entries, {}, { containers: [{ name: 'app', ...cpu('100m') }] }));
  expect(described).toContain('\nEffective Requests:      cpu=300m\nEffective Limits:        <none>\n');
});

test.each([
  [{ httpGet: { port: 80, path: '/x', scheme: 'HTTPS' } }, 'http-get https://:80/x'],
  [{ tcpSocket: { port: 'web' } }, 'tcp-socket :web'],
  [{ grpc: { port: 9, service: 's' } }, 'grpc <pod>:9 s'],
])('describe shows a liveness probe as $1', (livenessProbe, shown) => {
  expect(text(pod([{ name: 'bye', livenessProbe }]))).toContain(`    Liveness:        ${shown} delay=0s `);
});

describe('describe, for the termination of a Pod', () => {
  const termination = {
    reason: 'Deleted',
    startedAt: '2026-01-31T20:00:00.000000Z',
    deadline: '2026-01-31T20:01:00.000000Z',
  };
  test('the section shows reason, start and deadline once the termination has begun', () => {
    const described = pod([{ name: 'bye' }], { termination });
    expect(text(described)).toMatch(
      new RegExp(
        [
          'Effective Limits:    <none>',
          'Termination:',
          '  Reason:    Deleted',
          '  Started:   Sun, 01 Feb 2026 01:30:00 \\+0530',
          '  Deadline:  Sun, 01 Feb 2026 01:31:00 \\+0530$',
        ].join('\n'),
      ),
    );
  });

  test('the section shows the PreExit deadline, extensions, outages, the current entry and the entries that were given up', () => {
    const moved = {
      ...termination,
      preExitDeadline: '2026-01-31T20:00:40.000000Z',
      extendedSeconds: 20,
      outageSeconds: 46.6,
      turn: { entry: 'bye', since: '2026-01-31T20:00:10.500000Z' },
      skip: ['hang'],
    };
    expect(text(pod([{ name: 'bye' }], { termination: moved }))).toContain(`
Termination:
  Reason:            Deleted
  Started:           Sun, 01 Feb 2026 01:30:00 +0530
  PreExit Deadline:  Sun, 01 Feb 2026 01:30:40 +0530
  Deadline:          Sun, 01 Feb 2026 01:31:00 +0530
  Extended:          20s
  Outage:            47s, not counted
  Turn:              bye, since Sun, 01 Feb 2026 01:30:10 +0530
  Given Up:          hang`);
  });

  test('the section shows no turn of an entry that has ended', () => {
    const turn = { entry: 'bye', since: '2026-01-31T20:00:10.500000Z' };
    const ended = { name: 'bye', image: 'i', imageID: '', ready: false, restartCount: 0 };
    const statuses = [{ ...ended, state: { terminated: { exitCode: 0 } } }];
    const status = { termination: { ...termination, turn }, deferContainerStatuses: statuses };
    expect(text(pod([{ name: 'bye' }], status))).not.toContain('Turn:');
  });

  test('the section shows postExitGracePeriodSeconds and preStopPolicy', () => {
    const reserved = pod([{ name: 'bye' }], {}, { postExitGracePeriodSeconds: 20, preStopPolicy: 'AfterPreExit' });
    expect(text(reserved)).toMatch(/\nPre Stop Policy: {9}AfterPreExit\nPost Exit Grace Period: {2}20s$/);
  });

  test('the section shows the extension of the grace period by intervals or by a probe', () => {
    const intervals = {
      deferContainerGracePeriodExtensionInterval: 10,
      deferContainerGracePeriodExtensionCount: 3,
    };
    expect(text(pod([{ name: 'bye' }], {}, intervals))).toMatch(/\nGrace Period Extension: {2}10s, at most 3 times$/);
    const byProbe = { deferContainerGracePeriodExtension: true };
    expect(text(pod([{ name: 'bye' }], {}, byProbe))).toMatch(
      /\nGrace Period Extension: {2}while the liveness probe of the running entry succeeds$/,
    );
    expect(text(pod([{ name: 'bye' }], {}, { deferContainerGracePeriodExtension: false }))).not.toContain('Extension');
  });
});

test('the section of the defer containers is inserted after the app containers', () => {
  const section = ['Defer Containers:', '  bye:'];
  const conditions = 'Init Containers:\n  a:\nContainers:\n  app:\n    Image:  x\nConditions:\n  Type\n';
  expect(insertDeferSection(conditions, section)).toBe(
    conditions.replace('Conditions:', 'Defer Containers:\n  bye:\nConditions:'),
  );
  const ephemeral = 'Containers:\n  app:\nEphemeral Containers:\n  shell:\nConditions:\n';
  expect(insertDeferSection(ephemeral, section)).toBe(
    'Containers:\n  app:\nDefer Containers:\n  bye:\nEphemeral Containers:\n  shell:\nConditions:\n',
  );
  expect(insertDeferSection(conditions, [])).toBe(conditions);
});
