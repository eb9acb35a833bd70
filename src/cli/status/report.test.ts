import { expect, test } from 'vitest';
import { reportJson, reportLines, type StatusReport, type Trouble } from './report.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const LIST = 'lifepod status -o json';

const sick = (name: string, more: Partial<Trouble> = {}): Trouble => ({
  kind: 'Pod',
  namespace: 'n',
  name,
  uid: 'u',
  reason: 'ErrImagePull',
  since: NOW - 132_000,
  message: `${name} waits for the image i of its container app: it cannot be pulled.`,
  command: `lifepod why ${name} -n n`,
  ...more,
});

const report = (more: Partial<StatusReport> = {}): StatusReport => ({
  server: 'https://127.0.0.1:6443',
  kubernetesVersion: 'v1.33.0',
  nodes: [{ name: 'node', ready: true, runtime: 'containerd://1.7' }],
  podsByStatus: new Map([
    ['Running', 2],
    ['ErrImagePull', 1],
  ]),
  troubles: [],
  unread: [],
  ...more,
});

const ENGINE: StatusReport['engine'] = {
  version: '0.1.0',
  pid: 7,
  upMillis: 61_000,
  dataDir: '/d',
  podCidr: '10.222.0.0/16',
  serviceCidr: '10.96.0.0/16',
  memoryBytes: { engine: 2 ** 27, dns: 0, containerd: 2 ** 25, shims: 2 ** 24 },
  shims: 3,
};

test('without troubles, the text shows what runs and that nothing is unhealthy', () => {
  expect(reportLines(report({ engine: ENGINE }), LIST, NOW)).toEqual([
    'lifepod   0.1.0, PID 7, up 61s, data in /d',
    'API       https://127.0.0.1:6443, Kubernetes v1.33.0',
    'node      node, Ready, containerd://1.7',
    'networks  Pods 10.222.0.0/16, Services 10.96.0.0/16',
    'memory    engine 128 MiB, containerd 32 MiB, 3 shims 16 MiB',
    'Pods      3, 2 Running, 1 ErrImagePull',
    'unhealthy none',
  ]);
});

test('without the data folder, the text shows what the API reports, and what could not be read', () => {
  const read = { kubernetesVersion: undefined, nodes: [], podsByStatus: new Map(), unread: ['Nodes: forbidden'] };
  expect(reportLines(report(read), LIST, NOW)).toEqual([
    'API       https://127.0.0.1:6443, Kubernetes unknown',
    'Pods      0',
    'unhealthy none',
    'unknown',
    '  Nodes: forbidden',
  ]);
});

test('the text names the commit from which the running engine was built', () => {
  const [line] = reportLines(report({ engine: { ...ENGINE, commit: 'a'.repeat(40) } }), LIST, NOW);
  expect(line).toBe('lifepod   0.1.0, PID 7, up 61s, data in /d, commit aaaaaaaaaaaa');
});

test('the text counts one shim in the singular', () => {
  const lines = reportLines(report({ engine: { ...ENGINE, shims: 1 } }), LIST, NOW);
  expect(lines).toContain('memory    engine 128 MiB, containerd 32 MiB, 1 shim 16 MiB');
});

const troublesIn = (troubles: Trouble[]): string[] => {
  const lines = reportLines(report({ troubles }), LIST, NOW);
  return lines.slice(lines.indexOf('unhealthy') + 1);
};

test.each<[string, Trouble, string]>([
  [
    'cause, time, sentence and command',
    sick('p'),
    '  Pod n/p: ErrImagePull for 2m12s: waits for the image i of its container app: it cannot be pulled; see: lifepod why p -n n',
  ],
  [
    'no time if it is not known',
    sick('p', { since: undefined, message: 'p waits.' }),
    '  Pod n/p: ErrImagePull: waits; see: lifepod why p -n n',
  ],
  [
    'at most 300 characters of a sentence',
    sick('p', { since: NOW + 1000, message: `p ${'x'.repeat(1000)}` }),
    `  Pod n/p: ErrImagePull for 0s: ${'x'.repeat(300)}…; see: lifepod why p -n n`,
  ],
  [
    'a manifest as the message',
    { kind: 'StaticManifest', name: '/d/manifests/a.yaml', message: '/d/manifests/a.yaml: it is not YAML' },
    '  /d/manifests/a.yaml: it is not YAML',
  ],
])('the text shows one line for a trouble: %s', (_, trouble, line) => {
  expect(troublesIn([trouble])).toEqual([line]);
});

test('the text names at most 20 Pods, and all other troubles before them', () => {
  const pods = Array.from({ length: 23 }, (_, index) => sick(`p${index}`));
  const lines = troublesIn([...pods, { kind: 'Disk', message: 'the disk is full' }]);
  expect(lines[0]).toBe('  the disk is full');
  expect(lines).toHaveLength(22);
  expect(lines.at(-1)).toBe('  and 3 more Pods: lifepod status -o json lists all');
});

test('a workload that cannot create Pods is reported like a Pod', () => {
  const web = sick('web', {
    kind: 'Deployment',
    reason: 'FailedCreate',
    message: 'web cannot create Pods: no account',
    command: 'lifepod why deployment/web -n n',
  });
  const pods = Array.from({ length: 20 }, (_, index) => sick(`p${index}`));
  const lines = troublesIn([web, ...pods]);
  expect(lines[0]).toBe(
    '  Deployment n/web: FailedCreate for 2m12s: cannot create Pods: no account; see: lifepod why deployment/web -n n',
  );
  expect(lines.at(-1)).toBe('  and 1 more object: lifepod status -o json lists all');
});

test('many Pods with the same trouble hide no other trouble', () => {
  const crowd = Array.from({ length: 50 }, (_, index) => sick(`p${index}`));
  const lines = troublesIn([...crowd, sick('q', { reason: 'NotReady' }), sick('r', { reason: 'Error' })]);
  expect(lines.map((line) => line.split(':')[0]).slice(-4)).toEqual([
    '  Pod n/p17',
    '  Pod n/q',
    '  Pod n/r',
    '  and 32 more Pods',
  ]);
});

test('the JSON has all troubles, in the form that README documents', () => {
  const pods = Array.from({ length: 23 }, (_, index) => sick(`p${index}`));
  const json = JSON.parse(JSON.stringify(reportJson(report({ engine: ENGINE, troubles: pods })))) as {
    troubles: object[];
  };
  expect(json.troubles).toHaveLength(23);
  expect({ ...json, troubles: json.troubles.slice(0, 1) }).toEqual({
    healthy: false,
    engine: {
      version: '0.1.0',
      pid: 7,
      uptimeSeconds: 61,
      dataDir: '/d',
      podCIDR: '10.222.0.0/16',
      serviceCIDR: '10.96.0.0/16',
      memoryBytes: { engine: 2 ** 27, dns: 0, containerd: 2 ** 25, shims: 2 ** 24 },
    },
    server: 'https://127.0.0.1:6443',
    kubernetesVersion: 'v1.33.0',
    nodes: [{ name: 'node', ready: true, runtime: 'containerd://1.7' }],
    podsByStatus: { Running: 2, ErrImagePull: 1 },
    troubles: [
      {
        kind: 'Pod',
        namespace: 'n',
        name: 'p0',
        uid: 'u',
        reason: 'ErrImagePull',
        since: '2026-01-31T11:57:48Z',
        message: 'p0 waits for the image i of its container app: it cannot be pulled.',
        command: 'lifepod why p0 -n n',
      },
    ],
    unread: [],
  });
  expect(reportJson(report())).toMatchObject({ healthy: true });
});
