import { expect, onTestFinished, test } from 'vitest';
import type { ClusterRole, PolicyRule } from '../../api/generated/types.ts';
import { CLUSTER_ROLES } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { aggregatedRules } from './aggregate.ts';
import { startClusterRoleAggregation } from './cluster-role-aggregation.ts';

const rule = (resource: string): PolicyRule => ({ apiGroups: [''], resources: [resource], verbs: ['get'] });

const role = (name: string, labels: Record<string, string>, ...rules: PolicyRule[]): ClusterRole => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name, labels },
  rules,
});

const aggregated = (name: string, label: string, labels: Record<string, string> = {}): ClusterRole => ({
  ...role(name, labels),
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'true' } }, { matchLabels: { also: label } }] },
});

test('an aggregated role has the rules of the selected roles, each once, in the order of selectors and names', () => {
  const all = [
    role('a', { also: 'x' }, rule('pods')),
    role('b', { x: 'true' }, rule('services'), rule('secrets')),
    role('c', { x: 'true' }, rule('secrets')),
    role('d', { y: 'true' }, rule('nodes')),
    aggregated('sum', 'x', { x: 'true' }),
  ];
  const sum = all[4] as ClusterRole;
  const rules = [rule('services'), rule('secrets'), rule('pods')];
  expect(aggregatedRules(sum, all)).toEqual(rules);
  expect(aggregatedRules({ ...sum, rules }, all)).toBeUndefined();
});

test('the controller follows the labels and rules of all ClusterRoles, also through aggregated ones', async () => {
  const backend = await registryBackend({ timers: systemTimers() });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const client = clientOf(backend);
  await backend.set(CLUSTER_ROLES, aggregated('outer', 'outer'));
  await backend.set(CLUSTER_ROLES, aggregated('inner', 'inner', { outer: 'true' }));
  await startClusterRoleAggregation(
    withInformers({ client, timers: systemTimers(), log: silentLog, signal: stop.signal }),
  );
  const rulesOf = async (name: string) => ((await backend.get(CLUSTER_ROLES, undefined, name)) as ClusterRole).rules;
  await backend.set(CLUSTER_ROLES, role('one', { inner: 'true' }, rule('pods')));
  await expect.poll(() => rulesOf('outer')).toEqual([rule('pods')]);
  await backend.set(CLUSTER_ROLES, role('one', { inner: 'true' }, rule('services')));
  await expect.poll(() => rulesOf('outer')).toEqual([rule('services')]);
  await backend.remove(CLUSTER_ROLES, undefined, 'one');
  await expect.poll(async () => (await rulesOf('outer')) ?? []).toEqual([]);
  const outer = await backend.get(CLUSTER_ROLES, undefined, 'outer');
  const managers = outer.metadata.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`);
  expect(managers).toContain('clusterrole-aggregation-controller Apply');
});
