import { expect, test } from 'vitest';
import type {
  Container,
  DeferContainer,
  LimitRange,
  LimitRangeItem,
  PersistentVolumeClaim,
  Pod,
} from '../../../generated/types.ts';
import { claimViolation, podViolation } from './constraints.ts';
import { LIMIT_RANGER_ANNOTATION, setContainerDefaults } from './container-defaults.ts';

type Amounts = Record<string, string>;

const range = (...limits: LimitRangeItem[]): LimitRange => ({
  apiVersion: 'v1',
  kind: 'LimitRange',
  metadata: { name: 'r' },
  spec: { limits },
});
const of = (type: string, lists: Omit<LimitRangeItem, 'type'>): LimitRange => range({ type, ...lists });
const container = (name: string, requests?: Amounts, limits?: Amounts, more: object = {}): Container => ({
  name,
  image: 'i',
  ...more,
  ...(requests || limits ? { resources: { ...(requests && { requests }), ...(limits && { limits }) } } : {}),
});
const pod = (containers: Container[], initContainers: Container[] = [], deferContainers: Container[] = []): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers, initContainers, deferContainers: deferContainers as DeferContainer[] },
});
const SIDECAR = { restartPolicy: 'Always' };

const defaults = of('Container', {
  default: { cpu: '1', memory: '1Gi' },
  defaultRequest: { cpu: '100m', memory: '64Mi' },
});

test('a LimitRange sets missing requests and limits of all containers, and lists them in the annotation', () => {
  const changed = pod([container('a', { cpu: '2' }), container('b')], [container('i', {}, { memory: '1Mi' })]);
  setContainerDefaults(changed, defaults);
  expect(changed.spec?.containers.map(({ resources }) => resources)).toEqual([
    { requests: { cpu: '2', memory: '64Mi' }, limits: { cpu: '1', memory: '1Gi' } },
    { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1', memory: '1Gi' } },
  ]);
  expect(changed.spec?.initContainers?.[0]?.resources).toEqual({
    requests: { cpu: '100m', memory: '64Mi' },
    limits: { memory: '1Mi', cpu: '1' },
  });
  expect(changed.metadata.annotations).toEqual({
    [LIMIT_RANGER_ANNOTATION]:
      'LimitRanger plugin set: memory request for container a; cpu, memory limit for container a; ' +
      'cpu, memory request for container b; cpu, memory limit for container b; ' +
      'cpu, memory request for init container i; cpu limit for init container i',
  });
});

test('a LimitRange sets defaults only in defer containers that have a request or limit', () => {
  const changed = pod(
    [container('a', { cpu: '1', memory: '1' }, { cpu: '1', memory: '1' })],
    [],
    [container('plain'), container('counted', { cpu: '1' })],
  );
  setContainerDefaults(changed, defaults);
  expect(changed.spec?.deferContainers?.map(({ resources }) => resources)).toEqual([
    undefined,
    { requests: { cpu: '1', memory: '64Mi' }, limits: { cpu: '1', memory: '1Gi' } },
  ]);
  expect(changed.metadata.annotations?.[LIMIT_RANGER_ANNOTATION]).toBe(
    'LimitRanger plugin set: memory request for defer container counted; cpu, memory limit for defer container counted',
  );
});

test.each<[string, LimitRange]>([
  ['has no defaults', of('Container', { min: { cpu: '1' } })],
  ['applies to Pods', of('Pod', { max: { cpu: '1' } })],
])('a LimitRange that %s leaves the Pod unchanged', (_, limits) => {
  const changed = pod([container('a')]);
  setContainerDefaults(changed, limits);
  expect(changed).toEqual(pod([container('a')]));
});

const min = of('Container', { min: { cpu: '100m' } });
const max = of('Container', { max: { cpu: '1' } });
const ratio = of('Container', { maxLimitRequestRatio: { cpu: '2' } });
const minimum = 'minimum cpu usage per Container is 100m';
const maximum = 'maximum cpu usage per Container is 1';
const maxRatio = 'cpu max limit to request ratio per Container is 2';

test.each<[string, LimitRange, Pod, string | undefined]>([
  ['accepts the minimum', min, pod([container('a', { cpu: '0.1' })]), undefined],
  ['rejects a missing request', min, pod([container('a')]), `${minimum}.  No request is specified`],
  ['rejects a low request', min, pod([container('a', { cpu: '50m' })]), `${minimum}, but request is 50m`],
  ['rejects a low limit', min, pod([container('a', { cpu: '1' }, { cpu: '50m' })]), `${minimum}, but limit is 50m`],
  ['accepts the maximum', max, pod([container('a', { cpu: '1' }, { cpu: '1000m' })]), undefined],
  ['rejects a missing limit', max, pod([container('a', { cpu: '1' })]), `${maximum}.  No limit is specified`],
  ['rejects a high limit', max, pod([container('a', {}, { cpu: '2' })]), `${maximum}, but limit is 2`],
  ['rejects a high request', max, pod([container('a', { cpu: '2' }, { cpu: '1' })]), `${maximum}, but request is 2`],
  ['accepts the ratio', ratio, pod([container('a', { cpu: '1' }, { cpu: '2' })]), undefined],
  [
    'rejects a high ratio',
    ratio,
    pod([container('a', { cpu: '300m' }, { cpu: '1' })]),
    `${maxRatio}, but provided ratio is 3.333333`,
  ],
  [
    'rejects a ratio without a request',
    ratio,
    pod([container('a', {}, { cpu: '1' })]),
    `${maxRatio}, but no request is specified or request is 0`,
  ],
  [
    'rejects a ratio without a limit',
    ratio,
    pod([container('a', { cpu: '1' }, { cpu: '0' })]),
    `${maxRatio}, but no limit is specified or limit is 0`,
  ],
  [
    'lists different errors once each',
    of('Container', { min: { memory: '1Ki', cpu: '100m' } }),
    pod([container('a', { cpu: '50m', memory: '1' }), container('b', { cpu: '50m', memory: '1Ki' })]),
    `[${minimum}, but request is 50m, minimum memory usage per Container is 1Ki, but request is 1]`,
  ],
  [
    'checks init containers',
    min,
    pod([container('a', { cpu: '1' })], [container('i')]),
    `${minimum}.  No request is specified`,
  ],
  [
    'ignores defer containers without amounts',
    min,
    pod([container('a', { cpu: '1' })], [], [container('d')]),
    undefined,
  ],
  [
    'checks defer containers with amounts',
    min,
    pod([container('a', { cpu: '1' })], [], [container('d', { cpu: '1m' })]),
    `${minimum}, but request is 1m`,
  ],
])('a LimitRange for containers %s', (_, limits, checked, error) => {
  expect(podViolation(checked, limits)).toBe(error);
});

const podMax = of('Pod', { max: { cpu: '2' } });
const both = (cpu: string): [Amounts, Amounts] => [{ cpu }, { cpu }];
const podMaximum = 'maximum cpu usage per Pod is 2';

test.each<[string, Pod, string | undefined]>([
  ['accepts the sum of the containers', pod([container('a', ...both('1')), container('b', ...both('1'))]), undefined],
  [
    'rejects the sum of the containers',
    pod([container('a', ...both('1')), container('b', ...both('1500m'))]),
    `${podMaximum}, but limit is 2500m`,
  ],
  [
    'accepts init containers that run one after the other',
    pod([container('a', ...both('2'))], [container('i', ...both('2'))]),
    undefined,
  ],
  [
    'rejects a large init container',
    pod([container('a', ...both('1'))], [container('i', ...both('3'))]),
    `${podMaximum}, but limit is 3`,
  ],
  [
    'adds sidecars to the containers',
    pod([container('a', ...both('1'))], [container('s', ...both('1500m'), SIDECAR)]),
    `${podMaximum}, but limit is 2500m`,
  ],
  [
    'adds the largest defer container',
    pod([container('a', ...both('1'))], [], [container('d', ...both('1')), container('e', ...both('1500m'))]),
    `${podMaximum}, but limit is 2500m`,
  ],
])('a LimitRange for Pods %s', (_, checked, error) => {
  expect(podViolation(checked, podMax)).toBe(error);
});

test('a LimitRange for Pods ignores the overhead', () => {
  const checked = pod([container('a', ...both('2'))]);
  checked.spec = { ...checked.spec, overhead: { cpu: '1' } } as Pod['spec'];
  expect(podViolation(checked, podMax)).toBe(undefined);
});

const storage = of('PersistentVolumeClaim', { min: { storage: '1Gi' }, max: { storage: '2Gi' } });

test.each<[string, Amounts, string | undefined]>([
  ['accepts', { storage: '1Gi' }, undefined],
  ['rejects', { storage: '1Mi' }, 'minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi'],
  ['rejects', { storage: '3Gi' }, 'maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi'],
])('a LimitRange for claims %s a request of %o', (_, requests, error) => {
  const claim: PersistentVolumeClaim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'c' },
    spec: { resources: { requests } },
  };
  expect(claimViolation(claim, storage)).toBe(error);
});
