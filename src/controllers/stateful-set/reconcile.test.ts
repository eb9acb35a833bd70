import { describe, expect, test } from 'vitest';
import type { ControllerRevision, PersistentVolumeClaim, Pod, StatefulSetSpec } from '../../api/generated/types.ts';
import type { OwnerReference } from '../../machinery/meta.ts';
import { formatTime } from '../../machinery/time.ts';
import { newRevision } from '../revisions/history.ts';
import { STATEFUL_SET_REVISIONS } from './members.ts';
import { BURST, type Decision, reconcile } from './reconcile.ts';
import { claimTemplate, imageOf, statefulSet, templateWith } from './stateful-set-fixture.ts';

const NOW = Date.UTC(2026, 0, 1);
const READY_FOR = 60_000;

const revision = (name: string, number: number): ControllerRevision => {
  const made = newRevision(statefulSet({ template: templateWith(name) }), STATEFUL_SET_REVISIONS, number);
  return { ...made, metadata: { ...made.metadata, name } };
};
const [OLD, NEW] = [revision('old', 1), revision('new', 2)];

const STATES: Record<string, { phase: string; ready?: boolean; deleted?: boolean }> = {
  ready: { phase: 'Running', ready: true },
  running: { phase: 'Running' },
  pending: { phase: 'Pending' },
  leaving: { phase: 'Running', ready: true, deleted: true },
  failed: { phase: 'Failed' },
  ended: { phase: 'Succeeded' },
  'failed-leaving': { phase: 'Failed', deleted: true },
};

/** Parses ORDINAL:REVISION:STATE, such as `2:old:ready`. */
function parsed(text: string): Pod {
  const [ordinal = '', of = '', state = ''] = text.split(':');
  const { phase, ready, deleted } = STATES[state] ?? { phase: 'Pending' };
  const name = `db-${ordinal}`;
  const labels = { app: 'db', 'controller-revision-hash': of, 'statefulset.kubernetes.io/pod-name': name };
  const deletionTimestamp = deleted ? { deletionTimestamp: formatTime(NOW) } : {};
  const at = { lastTransitionTime: formatTime(NOW - READY_FOR) };
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: `data-${name}` } }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'a', uid: `uid-${ordinal}`, labels, ...deletionTimestamp },
    spec: { containers: [], volumes },
    status: { phase, conditions: ready ? [{ type: 'Ready', status: 'True', ...at }] : [] },
  };
}

interface Given {
  spec?: Partial<StatefulSetSpec>;
  claims?: readonly PersistentVolumeClaim[];
}

function decide(pods: string, { spec, claims = [] }: Given = {}): Decision {
  const set = statefulSet({ replicas: 3, updateStrategy: { type: 'RollingUpdate', rollingUpdate: {} }, ...spec });
  set.metadata.uid = 'uid-set';
  set.spec = { ...set.spec, template: templateWith('new') } as StatefulSetSpec;
  return reconcile({
    set,
    revisions: { current: OLD, update: NEW },
    history: { current: NEW, duplicates: [], old: [OLD], revision: 2 },
    pods: pods === '' ? [] : pods.split(' ').map(parsed),
    claimNamed: (name) => claims.find(({ metadata }) => metadata.name === name),
    now: NOW,
  });
}

const shown = ({ create, remove }: Decision): string =>
  [
    ...create.map(({ pod }) => `+${pod.metadata.name.slice(3)}:${imageOf(pod)}`),
    ...remove.map(({ pod, reason }) => `-${pod.metadata.name.slice(3)}:${reason}`),
  ].join(' ');

const parallel: Partial<StatefulSetSpec> = { podManagementPolicy: 'Parallel' };
const rolling = (rollingUpdate: object): Partial<StatefulSetSpec> => ({
  updateStrategy: { type: 'RollingUpdate', rollingUpdate },
});

describe('in order', () => {
  test.each<[string, string, Partial<StatefulSetSpec>, string]>([
    ['the first Pod', '', {}, '+0:new'],
    ['nothing for no replicas', '', { replicas: 0 }, ''],
    ['the second Pod after the first is ready', '0:new:ready', {}, '+1:new'],
    ['nothing while the first Pod is pending', '0:new:pending', {}, ''],
    ['nothing while the first Pod is not ready', '0:new:running', {}, ''],
    ['nothing while the first Pod is being deleted', '0:new:leaving', {}, ''],
    ['nothing while the first Pod is not available', '0:new:ready', { minReadySeconds: 61 }, ''],
    ['the second Pod once the first is available', '0:new:ready', { minReadySeconds: 60 }, '+1:new'],
    ['a missing Pod before a later one', '0:new:ready 2:new:ready', {}, '+1:new'],
    ['a failed Pod is deleted', '0:new:failed 1:new:ready', {}, '-0:Replaced'],
    ['a Pod that succeeded is deleted', '0:new:ready 1:new:ended', {}, '-1:Replaced'],
    ['nothing while a failed Pod is being deleted', '0:new:failed-leaving', {}, ''],
    [
      'the Pod with the highest ordinal is scaled down',
      '0:new:ready 1:new:ready 2:new:ready',
      { replicas: 1 },
      '-2:ScaledDown',
    ],
    [
      'nothing is scaled down while a Pod is being deleted',
      '0:new:ready 1:new:ready 2:new:leaving',
      { replicas: 1 },
      '',
    ],
    ['nothing is scaled down while a lower Pod is missing', '1:new:ready', { replicas: 1 }, '+0:new'],
    ['nothing is scaled down while a lower Pod is not ready', '0:new:running 1:new:ready', { replicas: 1 }, ''],
    [
      'a Pod that is not ready is scaled down if no lower one is unhealthy',
      '0:new:ready 1:new:running',
      { replicas: 1 },
      '-1:ScaledDown',
    ],
    [
      'a Pod that is not ready is not scaled down while a lower one is unhealthy',
      '0:new:running 1:new:running',
      { replicas: 0 },
      '',
    ],
    [
      'the unhealthy Pod with the lowest ordinal is scaled down last',
      '0:new:running 1:new:ready',
      { replicas: 0 },
      '-1:ScaledDown',
    ],
    ['a failed Pod outside of the range is scaled down', '0:new:ready 1:new:failed', { replicas: 1 }, '-1:ScaledDown'],
    [
      'a Pod below the first ordinal is scaled down',
      '0:new:ready 5:new:ready',
      { replicas: 1, ordinals: { start: 5 } },
      '-0:ScaledDown',
    ],
    ['the highest outdated Pod is replaced', '0:old:ready 1:old:ready 2:old:ready', {}, '-2:Replaced'],
    ['nothing is replaced while a Pod is being deleted', '0:old:ready 1:old:ready 2:old:leaving', {}, ''],
    ['nothing is replaced while an updated Pod is not ready', '0:old:ready 1:old:ready 2:new:running', {}, ''],
    ['nothing is replaced while an outdated Pod is not ready', '0:old:running 1:old:ready 2:old:ready', {}, ''],
    ['nothing is replaced below the partition', '0:old:ready 1:old:ready 2:new:ready', rolling({ partition: 2 }), ''],
    ['a Pod below the partition is created as it was', '1:old:ready 2:new:ready', rolling({ partition: 2 }), '+0:old'],
    [
      'a Pod from the partition on is created with the new template',
      '0:old:ready',
      rolling({ partition: 1 }),
      '+1:new',
    ],
    [
      'the partition counts from the first ordinal',
      '',
      { ...rolling({ partition: 1 }), ordinals: { start: 5 } },
      '+5:old',
    ],
    [
      'without a partition, as many Pods stay as have the old template',
      '1:old:ready 2:new:ready',
      { updateStrategy: { type: 'RollingUpdate' } },
      '+0:old',
    ],
    [
      'with OnDelete nothing is replaced',
      '0:old:ready 1:old:ready 2:old:ready',
      { updateStrategy: { type: 'OnDelete' } },
      '',
    ],
    [
      'with OnDelete a missing Pod is created with the new template',
      '0:old:ready 2:old:ready',
      { updateStrategy: { type: 'OnDelete' } },
      '+1:new',
    ],
    [
      'several Pods are replaced with maxUnavailable 2',
      '0:old:ready 1:old:ready 2:old:ready',
      rolling({ maxUnavailable: 2 }),
      '-2:Replaced -1:Replaced',
    ],
  ])('%s', (_, pods, spec, expected) => {
    expect(shown(decide(pods, { spec }))).toBe(expected);
  });
});

describe('in parallel', () => {
  test.each<[string, string, Partial<StatefulSetSpec>, string]>([
    ['all missing Pods', '1:new:pending', {}, '+0:new +2:new'],
    ['failed and missing Pods at once', '0:new:failed 2:new:leaving', {}, '+1:new -0:Replaced'],
    [
      'all Pods outside of the range',
      '0:new:running 1:new:leaving 2:new:ready 3:new:ready',
      { replicas: 1 },
      '-3:ScaledDown -2:ScaledDown',
    ],
    [
      'Pods outside of the range and the highest outdated Pod',
      '0:old:ready 1:old:ready 2:old:ready',
      { replicas: 2 },
      '-2:ScaledDown -1:Replaced',
    ],
    ['an outdated Pod that is not ready', '0:old:ready 1:old:running 2:new:ready', {}, '-1:Replaced'],
    ['nothing else while a Pod is missing', '0:old:ready 1:old:ready', {}, '+2:new'],
    [
      'as many as maxUnavailable allows',
      '0:old:ready 1:old:ready 2:new:running',
      rolling({ maxUnavailable: 2 }),
      '-1:Replaced',
    ],
    ['none if too many are unavailable', '0:old:ready 1:old:running 2:new:running', rolling({ maxUnavailable: 2 }), ''],
    [
      'at least one with a small percentage',
      '0:old:ready 1:old:ready 2:old:ready',
      rolling({ maxUnavailable: '10%' }),
      '-2:Replaced',
    ],
    [
      'a percentage is rounded down',
      '0:old:ready 1:old:ready 2:old:ready',
      rolling({ maxUnavailable: '99%' }),
      '-2:Replaced -1:Replaced',
    ],
    ['none that is not available yet', '0:old:ready 1:old:ready 2:new:ready', { minReadySeconds: 61 }, ''],
  ])('%s', (_, pods, spec, expected) => {
    expect(shown(decide(pods, { spec: { ...parallel, ...spec } }))).toBe(expected);
  });

  test('one decision creates a limited number of Pods, also of a huge StatefulSet', () => {
    expect(decide('', { spec: { ...parallel, replicas: 2_000_000_000 } }).create).toHaveLength(BURST);
  });
});

test('a StatefulSet that is being deleted only has a status', () => {
  const set = statefulSet({ replicas: 3 });
  set.metadata.deletionTimestamp = formatTime(NOW);
  const revisions = { current: NEW, update: NEW };
  const history = { current: NEW, duplicates: [], old: [OLD], revision: 2 };
  const pods = [parsed('0:new:ready')];
  const decision = reconcile({ set, revisions, history, pods, claimNamed: () => undefined, now: NOW });
  expect(decision).toMatchObject({ create: [], remove: [], obsolete: [], status: { replicas: 1, readyReplicas: 1 } });
});

test('the status counts revisions without Pods that are being deleted, and says when the next Pod is available', () => {
  const { status, checkAt } = decide('0:old:ready 1:new:ready 2:new:leaving 3:old:running', {
    spec: { minReadySeconds: 90 },
  });
  expect(status).toEqual({
    observedGeneration: 0,
    replicas: 4,
    readyReplicas: 3,
    availableReplicas: 0,
    currentReplicas: 2,
    updatedReplicas: 1,
    currentRevision: 'old',
    updateRevision: 'new',
    collisionCount: 0,
  });
  expect(checkAt).toBe(NOW + 30_000);
});

test('the update is complete once all Pods are ready and have the new revision', () => {
  const done = decide('0:new:ready 1:new:ready 2:new:ready').status;
  expect(done).toMatchObject({ currentRevision: 'new', currentReplicas: 3, updatedReplicas: 3 });
  expect(decide('0:new:ready 1:new:ready 2:new:running').status).toMatchObject({ currentRevision: 'old' });
});

describe('claims', () => {
  const volumeClaimTemplates = [claimTemplate('data')];
  const set: OwnerReference = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    name: 'db',
    uid: 'uid-set',
    controller: true,
  };
  const pod = (ordinal: number): OwnerReference => ({
    apiVersion: 'v1',
    kind: 'Pod',
    name: `db-${ordinal}`,
    uid: `uid-${ordinal}`,
    controller: true,
  });
  const other: OwnerReference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
  const claim = (ordinal: number, ...ownerReferences: OwnerReference[]): PersistentVolumeClaim => {
    const name = `data-db-${ordinal}`;
    return { ...claimTemplate(name), metadata: { name, namespace: 'a', ownerReferences } };
  };
  const policy = (whenDeleted: string, whenScaled: string): Partial<StatefulSetSpec> => ({
    volumeClaimTemplates,
    persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled },
  });
  const owners = ({ own }: Decision): string =>
    own
      .map((change) => `${change.claim.metadata.name}: ${change.references.map(({ kind }) => kind).join()}`)
      .join('; ');

  test.each<[string, Partial<StatefulSetSpec>, PersistentVolumeClaim, string]>([
    ['a claim without an owner is right if it is retained', policy('Retain', 'Retain'), claim(0), ''],
    [
      'a claim loses the StatefulSet if it is retained',
      policy('Retain', 'Retain'),
      claim(0, set, other),
      'data-db-0: ConfigMap',
    ],
    [
      'a claim gets the StatefulSet with whenDeleted',
      policy('Delete', 'Retain'),
      claim(0, other),
      'data-db-0: ConfigMap,StatefulSet',
    ],
    ['a claim with the StatefulSet is right with whenDeleted', policy('Delete', 'Delete'), claim(0, set), ''],
    [
      'a claim whose owner does not control it is corrected',
      policy('Delete', 'Retain'),
      claim(0, { ...set, controller: false }),
      'data-db-0: StatefulSet',
    ],
    [
      'a claim of a Pod that is scaled down belongs to the Pod',
      policy('Delete', 'Delete'),
      claim(3, set),
      'data-db-3: Pod',
    ],
    ['a claim of a Pod that is scaled down keeps the Pod', policy('Retain', 'Delete'), claim(3, pod(3)), ''],
    [
      'a claim of a Pod that is scaled down belongs to the StatefulSet without whenScaled',
      policy('Delete', 'Retain'),
      claim(3),
      'data-db-3: StatefulSet',
    ],
    [
      'a claim of a Pod that is in the range again loses the Pod',
      policy('Retain', 'Delete'),
      claim(0, pod(0)),
      'data-db-0: ',
    ],
    [
      'a claim of another controller keeps it',
      policy('Delete', 'Delete'),
      claim(0, { ...other, controller: true }),
      '',
    ],
    [
      'a claim of another controller loses the StatefulSet',
      policy('Delete', 'Delete'),
      claim(0, { ...other, controller: true }, { ...set, controller: false }),
      'data-db-0: ConfigMap',
    ],
    [
      'a claim of an earlier StatefulSet is not changed',
      policy('Delete', 'Retain'),
      claim(0, { ...set, uid: 'earlier' }),
      '',
    ],
    [
      'a claim of an earlier Pod is not changed',
      policy('Delete', 'Delete'),
      claim(3, { ...pod(3), uid: 'earlier' }),
      '',
    ],
  ])('%s', (_, spec, given, expected) => {
    const pods = '0:new:ready 1:new:ready 2:new:ready 3:new:ready';
    expect(owners(decide(pods, { spec, claims: [given] }))).toBe(expected);
  });

  test('that are missing are created before the Pod, and for a Pod that waits for them', () => {
    const spec = { volumeClaimTemplates };
    expect(decide('', { spec }).create[0]?.claims.map(({ metadata }) => metadata.name)).toEqual(['data-db-0']);
    expect(decide('', { spec, claims: [claim(0)] }).create[0]?.claims).toEqual([]);
    expect(decide('0:new:pending', { spec }).claims[0]?.claims[0]?.metadata.name).toBe('data-db-0');
    expect(decide('0:new:ready', { spec }).claims).toEqual([]);
  });

  test.each<[string, Partial<StatefulSetSpec>, string]>([
    ['waits until the claim is deleted with whenScaled Delete', policy('Retain', 'Delete'), ''],
    ['uses the claim if it is retained', policy('Retain', 'Retain'), '+0:new'],
  ])('a Pod whose claim belongs to an earlier Pod %s', (_, spec, expected) => {
    expect(shown(decide('', { spec, claims: [claim(0, { ...pod(0), uid: 'earlier' })] }))).toBe(expected);
  });
});

test('an adopted Pod gets the labels and volumes of a member', () => {
  const volumeClaimTemplates = [claimTemplate('data'), claimTemplate('logs')];
  const [corrected] = decide('0:new:ready', { spec: { volumeClaimTemplates } }).correct;
  expect(corrected).toMatchObject({
    metadata: { labels: { 'apps.kubernetes.io/pod-index': '0' } },
    spec: {
      volumes: [
        { name: 'data', persistentVolumeClaim: { claimName: 'data-db-0' } },
        { name: 'logs', persistentVolumeClaim: { claimName: 'logs-db-0' } },
      ],
    },
  });
  expect(decide('0:new:ready').correct).toEqual([]);
});

test('the revisions above the limit are deleted unless the StatefulSet or a Pod has them', () => {
  const old = [3, 1, 2].map((number) => revision(`r${number}`, number));
  const obsolete = (revisionHistoryLimit: number, pods: string): string[] => {
    const set = statefulSet({ replicas: 1, revisionHistoryLimit });
    const history = { current: NEW, duplicates: [], old: [...old, OLD], revision: 9 };
    const given = { set, revisions: { current: OLD, update: NEW }, history, now: NOW, claimNamed: () => undefined };
    return reconcile({ ...given, pods: [parsed(pods)] }).obsolete.map(({ metadata }) => metadata.name);
  };
  expect(obsolete(1, '0:new:ready')).toEqual(['r1', 'r2']);
  expect(obsolete(1, '0:r1:ready')).toEqual(['r2']);
  expect(obsolete(0, '0:new:ready')).toEqual(['r1', 'r2', 'r3']);
  expect(obsolete(3, '0:new:ready')).toEqual([]);
});
