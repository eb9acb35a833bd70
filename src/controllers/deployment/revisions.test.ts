import { describe, expect, test } from 'vitest';
import type { PodTemplateSpec, ReplicaSet } from '../../api/generated/types.ts';
import { dns1123SubdomainErrors } from '../../machinery/names.ts';
import { templateHash } from '../ownership/template-hash.ts';
import { deployment, type SetState, setOf, templateWith } from './deployment-fixture.ts';
import {
  HASH,
  newReplicaSet,
  obsolete,
  REVISION,
  rolloutOf,
  sameTemplateIgnoringHash,
  withSyncedCurrent,
} from './revisions.ts';
import { DESIRED, MAX } from './rollout.ts';

const HISTORY = 'deployment.kubernetes.io/revision-history';
const v1 = (state: Partial<SetState> = {}): ReplicaSet => setOf({ image: 'v1', size: 4, ...state });
const nameOf = (set: ReplicaSet | undefined): string | undefined => set?.metadata.name;

describe('the hash of a template', () => {
  test('is a short name without vowels, and the same for each order of the fields', () => {
    const hash = templateHash(templateWith('v1'), 0);
    expect(hash).toMatch(/^[bcdfghjklmnpqrstvwxz2456789]{10}$/);
    expect(dns1123SubdomainErrors(`web-${hash}`)).toEqual([]);
    const { metadata, spec } = templateWith('v1');
    expect(templateHash({ spec, metadata } as PodTemplateSpec, 0)).toBe(hash);
  });

  test('depends on the template and on the number of collisions', () => {
    const hashes = [
      templateHash(templateWith('v1'), 0),
      templateHash(templateWith('v2'), 0),
      templateHash(templateWith('v1'), 1),
    ];
    expect(new Set(hashes).size).toBe(3);
  });
});

test.each<[string, (template: PodTemplateSpec) => void, boolean]>([
  ['the hash label', ({ metadata }) => Object.assign(metadata?.labels ?? {}, { [HASH]: 'x' }), true],
  ['empty annotations', ({ metadata }) => Object.assign(metadata ?? {}, { annotations: {} }), true],
  ['another label', ({ metadata }) => Object.assign(metadata?.labels ?? {}, { tier: 'x' }), false],
  ['the finalizers', ({ metadata }) => Object.assign(metadata ?? {}, { finalizers: ['a.b/c'] }), false],
  ['an annotation', ({ metadata }) => Object.assign(metadata ?? {}, { annotations: { restartedAt: 'x' } }), false],
  ['the spec', ({ spec }) => Object.assign(spec ?? {}, { hostNetwork: true }), false],
])('templates that differ in %s', (_, change, isSame) => {
  const changed = templateWith('v1');
  change(changed);
  expect(sameTemplateIgnoringHash(templateWith('v1'), changed)).toBe(isSame);
});

test.each<[string, object, boolean]>([
  ['selects all namespaces', { topologyKey: 'zone', namespaceSelector: {} }, false],
  ['lists no namespaces', { topologyKey: 'zone', namespaces: [] }, true],
])('a template with an affinity term that %s', (_, term, isSame) => {
  const withTerm = (each: object): PodTemplateSpec => {
    const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [each] };
    return { spec: { containers: [], affinity: { podAffinity } } } as PodTemplateSpec;
  };
  expect(sameTemplateIgnoringHash(withTerm({ topologyKey: 'zone' }), withTerm(term))).toBe(isSame);
});

test('the oldest ReplicaSet with the template is the current one, and the others are sorted by age', () => {
  const sets = [
    setOf({ image: 'v2', size: 1, ageSeconds: 5 }),
    { ...v1({ ageSeconds: 10 }), metadata: { ...v1({ ageSeconds: 10 }).metadata, name: 'younger' } },
    setOf({ image: 'v0', size: 1, ageSeconds: 90 }),
    v1({ ageSeconds: 20 }),
  ];
  const { current, old } = rolloutOf(deployment(), sets);
  expect([nameOf(current), old.map(nameOf)]).toEqual(['v1', ['v0', 'younger', 'v2']]);
});

describe('a new ReplicaSet', () => {
  const create = (of = deployment(), old: ReplicaSet[] = []) =>
    newReplicaSet({ deployment: of, current: undefined, old });

  test('has the hash in its name, its labels, its selector and its template', () => {
    const { metadata, spec } = create(deployment({ minReadySeconds: 5 }));
    const hash = templateHash(templateWith('v1'), 0);
    const labels = { app: 'web', [HASH]: hash };
    expect(metadata).toMatchObject({ name: `web-${hash}`, namespace: 'a', labels });
    expect(spec?.selector).toEqual({ matchLabels: labels });
    expect(spec?.template?.metadata?.labels).toEqual(labels);
    expect(spec).toMatchObject({ replicas: 4, minReadySeconds: 5, template: { spec: templateWith('v1').spec } });
    expect(metadata.ownerReferences).toMatchObject([{ kind: 'Deployment', name: 'web', uid: 'web', controller: true }]);
  });

  test('has the next revision, the amounts, and the annotations that are copied', () => {
    const annotations = {
      note: 'x',
      [REVISION]: '7',
      [DESIRED]: '9',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
    };
    const old = [setOf({ image: 'v0', size: 4, revision: 3 }), setOf({ image: 'v2', size: 0, revision: 5 })];
    expect(create(deployment({}, { annotations }), old).metadata.annotations).toEqual({
      note: 'x',
      [REVISION]: '6',
      [DESIRED]: '4',
      [MAX]: '5',
    });
  });

  test('has another name after a collision', () => {
    const collided = create(deployment({}, {}, { collisionCount: 1 }));
    expect(nameOf(collided)).not.toBe(nameOf(create()));
  });
});

describe('the annotations of an existing current ReplicaSet', () => {
  const sync = (own: Record<string, string>, otherRevision: number, annotations: Record<string, string> = {}) => {
    const old = [setOf({ image: 'v0', size: 0, revision: otherRevision })];
    const current = v1({ annotations: own });
    return withSyncedCurrent({ deployment: deployment({}, { annotations }), current, old }).current?.metadata
      .annotations;
  };

  test.each<[string, Record<string, string>, number, Record<string, string>]>([
    ['get a revision', {}, 2, { [REVISION]: '3' }],
    ['keep the greatest revision', { [REVISION]: '3' }, 2, { [REVISION]: '3' }],
    ['keep a revision above a gap', { [REVISION]: '9' }, 2, { [REVISION]: '9' }],
    ['keep an earlier revision in the history', { [REVISION]: '1' }, 2, { [REVISION]: '3', [HISTORY]: '1' }],
    ['append to the history', { [REVISION]: '3', [HISTORY]: '1' }, 4, { [REVISION]: '5', [HISTORY]: '1,3' }],
  ])('%s', (_, own, other, expected) => expect(sync(own, other)).toEqual(expected));

  test('are those of the Deployment, beside their own', () => {
    const own = { [REVISION]: '3', own: 'y', note: 'old' };
    expect(sync(own, 1, { note: 'x', [REVISION]: '8' })).toEqual({ [REVISION]: '3', own: 'y', note: 'x' });
  });

  test('drop the oldest revisions from a history above 2000 characters', () => {
    const long = Array.from({ length: 400 }, (_, index) => 1000 + index).join(',');
    const history = sync({ [REVISION]: '2000', [HISTORY]: long }, 2000)?.[HISTORY] ?? '';
    expect(history.length).toBeLessThanOrEqual(2000);
    expect(history).toMatch(/^1001,.*,1399,2000$/);
  });

  test('do not change the ReplicaSet if they are current', () => {
    const rollout = { deployment: deployment(), current: v1({ revision: 1 }), old: [] };
    expect(withSyncedCurrent(rollout)).toBe(rollout);
  });
});

test('minReadySeconds of the Deployment is copied to the current ReplicaSet', () => {
  const object = deployment({ minReadySeconds: 7 });
  const { current } = withSyncedCurrent({ deployment: object, current: v1({ revision: 1 }), old: [] });
  expect(current?.spec?.minReadySeconds).toBe(7);
});

describe('ReplicaSets above the revisionHistoryLimit', () => {
  const empty = (revision: number): ReplicaSet => setOf({ image: `r${revision}`, size: 0, revision });
  const namesFor = (revisionHistoryLimit: number | undefined, old: ReplicaSet[]): (string | undefined)[] => {
    const spec = revisionHistoryLimit === undefined ? {} : { revisionHistoryLimit };
    return obsolete({ deployment: deployment(spec), current: v1(), old }).map(nameOf);
  };
  const old = [empty(3), empty(1), empty(2)];

  test.each<[string, number | undefined, string[]]>([
    ['are those with the lowest revisions', 1, ['r1', 'r2']],
    ['are all old ones for 0', 0, ['r1', 'r2', 'r3']],
    ['do not exist for a larger limit', 3, []],
    ['do not exist without a limit', undefined, []],
    ['do not exist for the largest limit', 2 ** 31 - 1, []],
  ])('%s', (_, limit, names) => expect(namesFor(limit, old)).toEqual(names));

  test('are kept while they have Pods, are not observed, or are being deleted', () => {
    const busy = setOf({ image: 'r1', size: 0, pods: 1, revision: 1 });
    const unobserved = empty(2);
    unobserved.metadata.generation = 2;
    unobserved.status = { replicas: 0, observedGeneration: 1 };
    const wanted = setOf({ image: 'r3', size: 1, pods: 0, revision: 3 });
    expect(namesFor(0, [busy, unobserved, wanted])).toEqual([]);
    const deleted = empty(1);
    deleted.metadata.deletionTimestamp = '2026-01-31T12:00:00Z';
    expect(namesFor(1, [deleted, empty(2), empty(3)])).toEqual(['r2']);
  });
});
