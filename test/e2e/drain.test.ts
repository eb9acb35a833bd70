import { expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { startClient } from '../support/client-command.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { WAIT } from '../support/manifests.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const DEADLINE_MILLIS = 150_000;
const REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget.";

const waitFor = (path: string, value: number): Promise<void> =>
  lifepod.wait('pdb/web', `--for=jsonpath={.status.${path}}=${value}`);
const allow = (minAvailable: number): Promise<string> =>
  lifepod.kubectlOk('patch', 'pdb', 'web', '--type=merge', '-p', JSON.stringify({ spec: { minAvailable } }));
const pods = async (): Promise<Pod[]> => (await lifepod.get<{ items: Pod[] }>('pods', '-l', 'app=web')).items;
const remaining = (all: readonly Pod[]): string[] =>
  all
    .filter(({ metadata, spec }) => spec?.nodeName !== undefined && metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name);

test('kubectl drain waits until a PodDisruptionBudget allows the evictions, and the evicted Pods have the reason Evicted', async () => {
  const created = ['--image=busybox:1.28', '--replicas=2', '--', 'sh', '-c', WAIT];
  await lifepod.kubectlOk('create', 'deployment', 'web', ...created);
  await lifepod.kubectlOk('rollout', 'status', 'deployment/web', '--timeout=100s');
  await lifepod.kubectlOk('create', 'pdb', 'web', '--selector=app=web', '--min-available=2');
  await waitFor('currentHealthy', 2);
  expect(await lifepod.kubectlOk('get', 'pdb', 'web')).toMatch(/^web +2 +N\/A +0 +\d+s$/m);
  const [first = '', second = ''] = remaining(await pods());

  const eviction = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: first, namespace: lifepod.namespace },
  };
  const path = `/api/v1/namespaces/${lifepod.namespace}/pods/${first}/eviction`;
  const refused = await lifepod.kubectlInput(JSON.stringify(eviction), 'create', '--raw', path, '-f', '-');
  expect(refused).toMatchObject({ code: 1, stderr: `Error from server (TooManyRequests): ${REFUSAL}\n` });

  const drain = startClient(lifepod, KUBECTL, ['drain', 'node-1', '--ignore-daemonsets'], DEADLINE_MILLIS);
  for (const name of [first, second]) {
    const [line] = await drain.printed(new RegExp(`error when evicting pods/"${name}" .* budget\\.`));
    expect(line).toBe(`error when evicting pods/"${name}" -n "${lifepod.namespace}" (will retry after 5s): ${REFUSAL}`);
  }
  expect(remaining(await pods()).sort()).toEqual([first, second].sort());

  // The budget now allows one eviction. The replacement of the evicted Pod has no node, so the other Pod must stay.
  await allow(1);
  const [, gone = ''] = await drain.printed(/^pod\/(\S+) evicted$/m);
  await waitFor('currentHealthy', 1);
  const stays = [first, second].filter((name) => name !== gone);
  expect(remaining(await pods())).toEqual(stays);

  await allow(0);
  const { code, stdout } = await drain.ended;
  expect(code).toBe(0);
  expect(stdout).toContain(`pod/${stays[0]} evicted`);
  expect(stdout).toContain('node/node-1 drained');
  for (const name of [first, second]) {
    await record.gone(name);
    expect(record.history(name).at(-1)?.pod.status?.conditions).toContainEqual(
      expect.objectContaining({
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'EvictionByEvictionAPI',
        message: 'Eviction API: evicting',
      }),
    );
  }

  await lifepod.kubectlOk('uncordon', 'node-1');
  await lifepod.kubectlOk('rollout', 'status', 'deployment/web', '--timeout=100s');
});
