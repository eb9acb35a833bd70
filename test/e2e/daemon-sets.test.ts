import { expect } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { lifepod, test } from '../support/shared-engine.ts';

const RUN = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';

const create = async (): Promise<void> => {
  const labels = { app: 'agent' };
  const container = { name: 'app', image: 'busybox:1.28', command: ['sh', '-c', RUN] };
  const template = { metadata: { labels }, spec: { containers: [container] } };
  const object = { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'agent' } };
  await lifepod.apply({ ...object, spec: { selector: { matchLabels: labels }, template } });
};
const rolledOut = async (): Promise<void> => {
  const shown = await lifepod.kubectlOk('rollout', 'status', 'daemonset/agent', '--timeout=120s');
  expect(shown).toMatch(/daemon set "agent" successfully rolled out\n$/);
};
const rollout = (...args: string[]): Promise<string> => lifepod.kubectlOk('rollout', ...args);
const set = (variable: string): Promise<string> => lifepod.kubectlOk('set', 'env', 'daemonset/agent', variable);
const active = async (): Promise<Pod[]> => {
  const { items } = await lifepod.get<{ items: Pod[] }>('pods', '-l', 'app=agent');
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
};
const valuesOf = (pods: readonly Pod[]): (string | undefined)[] =>
  pods.map(({ spec }) => spec?.containers[0]?.env?.find(({ name }) => name === 'V')?.value);

test('a DaemonSet is updated, undone and restarted, and kubectl shows its history', async () => {
  await create();
  await rolledOut();
  expect(await lifepod.kubectlOk('get', 'daemonset', 'agent')).toMatch(/^agent +1 +1 +1 +1 +1 +<none> +\d+s$/m);
  await set('V=2');
  await rolledOut();
  expect(valuesOf(await active())).toEqual(['2']);
  const history = /^daemonset\.apps\/agent \nREVISION +CHANGE-CAUSE\n1 +<none>\n2 +<none>\n/;
  expect(await rollout('history', 'daemonset/agent')).toMatch(history);
  expect(await rollout('history', 'daemonset/agent', '--revision=2')).toMatch(/V:\s+2/);

  expect(await rollout('undo', 'daemonset/agent')).toBe('daemonset.apps/agent rolled back\n');
  await rolledOut();
  const [undone] = await active();
  expect(valuesOf([undone as Pod])).toEqual([undefined]);
  expect(await rollout('history', 'daemonset/agent')).toMatch(/\n2 +<none>\n3 +<none>\n/);
  await rollout('restart', 'daemonset/agent');
  await rolledOut();
  expect((await active()).map(({ metadata }) => metadata.uid)).not.toContain(undone?.metadata.uid);
  expect(await lifepod.kubectlOk('describe', 'daemonset', 'agent')).toMatch(
    /Normal +SuccessfulDelete .* daemonset-controller +Deleted pod: agent-/,
  );
});

test('a DaemonSet whose node selector no longer fits loses its Pod, and gets one again once it fits', async () => {
  await create();
  await rolledOut();
  const select = (nodeSelector: object): Promise<string> =>
    lifepod.kubectlOk(
      'patch',
      'daemonset',
      'agent',
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { template: { spec: { nodeSelector } } } }),
    );
  await select({ no: 'node' });
  await lifepod.kubectlOk(
    'wait',
    'daemonset/agent',
    '--for=jsonpath={.status.currentNumberScheduled}=0',
    '--timeout=60s',
  );
  expect(await active()).toEqual([]);
  await select({ no: null } as object);
  await rolledOut();
  expect(await active()).toHaveLength(1);
});
