import { expect, test } from 'vitest';
import type { DaemonSet } from '../../api/generated/types.ts';
import { historyOf, newRevision } from '../revisions/history.ts';
import { daemonSet, templateWith } from './daemon-set-fixture.ts';
import { DAEMON_SET_REVISIONS } from './history.ts';

const withTerm = (term: object): DaemonSet => {
  const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone', ...term }] };
  return daemonSet({ template: templateWith('v1', { affinity: { podAffinity } }) });
};

const withClass = (storageClassName: object): DaemonSet => {
  const spec = { accessModes: ['ReadWriteOnce'], resources: {}, ...storageClassName };
  return daemonSet({
    template: templateWith('v1', { volumes: [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec } } }] }),
  });
};

test.each<[string, DaemonSet, DaemonSet, boolean]>([
  ['another image', daemonSet(), daemonSet({ template: templateWith('v2') }), false],
  ['an empty list', withTerm({}), withTerm({ namespaces: [] }), true],
  [
    'an empty namespaceSelector, which selects all namespaces',
    withTerm({}),
    withTerm({ namespaceSelector: {} }),
    false,
  ],
  ['an empty labelSelector, which selects all Pods', withTerm({}), withTerm({ labelSelector: {} }), false],
  [
    'an empty storageClassName, which disables the default class',
    withClass({}),
    withClass({ storageClassName: '' }),
    false,
  ],
])('a template that differs by %s', (_, before, after, isSame) => {
  const revision = newRevision(before, DAEMON_SET_REVISIONS, 1);
  expect(historyOf(after, [revision]).current).toBe(isSame ? revision : undefined);
});
