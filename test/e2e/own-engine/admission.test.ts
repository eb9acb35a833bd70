/** Tests Pods that were bound without the scheduler or come from manifest files, and preemption. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Node, Pod } from '../../../src/api/generated/types.ts';
import { parseQuantity } from '../../../src/machinery/quantity.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { condition, inPhase, isReady, statusOf } from '../../support/pods.ts';

useOwnEngine();

const APPARMOR = '/sys/module/apparmor/parameters/enabled';
const appArmor = existsSync(APPARMOR) && readFileSync(APPARMOR, 'utf8').startsWith('Y');

const bound = (name: string, spec: object = {}, app: object = {}): object =>
  pod(name, { app: [{ name: 'app', script: WAIT, ...app }], spec: { nodeName: 'node-1', ...spec } });
const outcome = ({ status }: Pod) => ({ reason: status?.reason, message: status?.message });
const rejection = async (name: string) => outcome(await record.until(name, inPhase('Failed')));
const rejected = (reason: string, message: string) => ({ reason, message: `Pod was rejected: ${message}` });

describe('a Pod bound to the node', () => {
  test('a bound Pod that requests more CPU than the node has is rejected, and its status names the resource', async () => {
    const { status } = await lifepod.get<Node>('node', 'node-1');
    const cpus = Number(status?.allocatable?.['cpu']);
    await lifepod.apply(bound('much-cpu', {}, { resources: { requests: { cpu: String(cpus + 1) } } }));
    const message = `Node didn't have enough resource: cpu, requested: ${(cpus + 1) * 1000}, used: 0, capacity: ${cpus * 1000}`;
    const failed = await record.until('much-cpu', inPhase('Failed'));
    expect(outcome(failed)).toEqual(rejected('OutOfcpu', message));
    expect(failed.status?.startTime).toBeDefined();
    expect(await record.event('much-cpu', /OutOfcpu/)).toBe(`Warning OutOfcpu: ${message}`);
    expect(await lifepod.kubectlOk('get', 'pod', 'much-cpu')).toMatch(/^much-cpu\s+0\/1\s+OutOfcpu\s/m);
    expect(failed.status?.containerStatuses).toBeUndefined();
  });

  test.each(['memory', 'ephemeral-storage'])(
    'a bound Pod that requests more %s than the node has is rejected',
    async (resource) => {
      const { status } = await lifepod.get<Node>('node', 'node-1');
      const all = parseQuantity(status?.allocatable?.[resource] ?? '')?.nano ?? 0n;
      const requests = { [resource]: String(all / 1_000_000_000n + 1n) };
      await lifepod.apply(bound(`much-${resource}`, {}, { resources: { requests } }));
      expect(await rejection(`much-${resource}`)).toMatchObject({ reason: `OutOf${resource}` });
    },
  );

  test('a bound Pod is admitted after the Pod whose requests filled the node is deleted', async () => {
    const { status } = await lifepod.get<Node>('node', 'node-1');
    const half = `${(Number(status?.allocatable?.['cpu']) * 1000) / 2 + 100}m`;
    const resources = { resources: { requests: { cpu: half } } };
    await lifepod.apply(bound('first', {}, resources));
    await record.until('first', isReady);
    await lifepod.apply(bound('second', {}, resources));
    expect(await rejection('second')).toMatchObject({ reason: 'OutOfcpu' });
    await lifepod.delete('pod', 'first', 'second', '--now');
    await lifepod.apply(bound('second', {}, resources));
    await record.until('second', isReady);
    await lifepod.delete('pod', 'second', '--now');
  });

  test('a bound Pod whose hostPort is in use is rejected', async () => {
    const ports = { ports: [{ containerPort: 80, hostPort: 28081 }] };
    await lifepod.apply(bound('port', {}, ports));
    await record.until('port', isReady);
    await lifepod.apply(bound('same-port', {}, ports));
    expect(await rejection('same-port')).toEqual(
      rejected('NodePorts', "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"),
    );
  });

  test('a bound Pod that selects another node is rejected', async () => {
    await lifepod.apply(bound('elsewhere', { nodeSelector: { disk: 'ssd' } }));
    expect(await rejection('elsewhere')).toEqual(
      rejected('NodeAffinity', "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"),
    );
    await lifepod.kubectlOk('label', 'node', 'node-1', 'disk=ssd');
    await lifepod.apply(bound('here', { nodeSelector: { disk: 'ssd' }, tolerations: [{ operator: 'Exists' }] }));
    await record.until('here', isReady);
  });

  test('a bound Pod that does not tolerate a taint does not start if the effect is NoExecute, and is admitted if it is NoSchedule', async () => {
    await lifepod.kubectlOk('taint', 'node', 'node-1', 'a=b:NoSchedule');
    await lifepod.apply(bound('unscheduled'));
    await record.until('unscheduled', isReady);
    await lifepod.kubectlOk('taint', 'node', 'node-1', 'a-', 'c=d:NoExecute');
    // The node reads its taints from a copy. Once the taint has evicted a Pod, the copy contains the taint.
    await record.gone('unscheduled');
    await lifepod.apply(bound('driven-away'));
    // Taint eviction also deletes the Pod, possibly before the node rejects it.
    await record.gone('driven-away');
    const versions = record.history('driven-away').map(({ pod: version }) => version);
    expect(versions.flatMap(({ status }) => status?.containerStatuses ?? [])).toEqual([]);
    const failed = versions.find(inPhase('Failed'));
    if (failed !== undefined)
      expect(outcome(failed)).toEqual(
        rejected(
          'TaintToleration',
          "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
        ),
      );
    await lifepod.kubectlOk('taint', 'node', 'node-1', 'c-');
  });

  test('a bound Pod with a forbidden sysctl or an unsupported supplementalGroupsPolicy is rejected', async () => {
    await lifepod.apply(bound('sysctl', { securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '65536' }] } }));
    expect(await rejection('sysctl')).toEqual(
      rejected('SysctlForbidden', 'forbidden sysctl: "kernel.msgmax" not allowlisted'),
    );
    await lifepod.apply(bound('strict', { securityContext: { supplementalGroupsPolicy: 'Strict' } }));
    expect(await rejection('strict')).toEqual(
      rejected('SupplementalGroupsPolicyNotSupported', 'SupplementalGroupsPolicy=Strict is not supported in this node'),
    );
  });

  test.runIf(!appArmor)('a bound Pod with an AppArmor profile is rejected on a machine without AppArmor', async () => {
    const manifest = bound('confined') as { metadata: object };
    const annotations = { 'container.apparmor.security.beta.kubernetes.io/app': 'runtime/default' };
    const text = JSON.stringify({ ...manifest, metadata: { ...manifest.metadata, annotations } });
    const { stderr } = await lifepod.kubectlInput(text, 'create', '-f', '-');
    expect(stderr).toBe(
      'Warning: metadata.annotations[container.apparmor.security.beta.kubernetes.io/app]: deprecated since v1.30; use the "appArmorProfile" field instead\n',
    );
    expect(await rejection('confined')).toEqual(
      rejected('AppArmor', 'Cannot enforce AppArmor: AppArmor is not enabled on the host'),
    );
    expect(record.now('confined').spec?.containers[0]?.securityContext?.appArmorProfile).toEqual({
      type: 'RuntimeDefault',
    });
  });

  test.runIf(appArmor)('the AppArmor profile RuntimeDefault is enforced on a machine with AppArmor', async () => {
    await lifepod.apply(bound('confined', { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }));
    await record.until('confined', isReady);
    const profile = await lifepod.execOk('confined', '--', 'cat', '/proc/self/attr/current');
    expect(profile).toMatch(/\(enforce\)/);
  });

  test('a rejected Pod stays rejected after a restart of the engine, and can be deleted', async () => {
    const before = outcome(record.now('much-cpu'));
    await record.until('here', isReady);
    await lifepod.kill('SIGKILL');
    await lifepod.up();
    await recordAgain();
    expect(outcome(await lifepod.get<Pod>('pod', 'much-cpu'))).toEqual(before);
    await lifepod.delete('pod', 'much-cpu', '--timeout=30s');
  });
});

const PREEMPTED = { reason: 'Preempting', message: 'Preempted in order to admit critical pod' };

test('a critical Pod starts on a full node after another Pod is preempted and its defer containers have run', async () => {
  const { status } = await lifepod.get<Node>('node', 'node-1');
  const most = { resources: { requests: { cpu: `${Number(status?.allocatable?.['cpu']) * 1000 - 100}m` } } };
  await lifepod.apply(
    pod('makes-way', {
      app: [{ name: 'app', script: WAIT, ...most }],
      defer: [{ name: 'last', script: 'true' }],
      spec: { nodeName: 'node-1' },
    }),
  );
  await record.until('makes-way', isReady);
  await lifepod.apply(bound('critical', { priorityClassName: 'system-cluster-critical' }, most));
  const ended = await record.until('makes-way', inPhase('Failed'));
  expect(outcome(ended)).toEqual(PREEMPTED);
  expect(statusOf(ended, 'last').state?.terminated?.reason).toBe('Completed');
  expect(ended.status?.termination?.reason).toBe('Preempted');
  expect(condition(ended, 'DisruptionTarget')).toMatchObject({
    reason: 'TerminationByKubelet',
    message: 'Pod was preempted by Kubelet to accommodate a critical pod.',
  });
  expect(await record.event('makes-way', /Preempting/)).toBe(`Warning Preempting: ${PREEMPTED.message}`);
  const begun = await record.until('critical', isReady);
  expect(Date.parse(begun.status?.startTime ?? '')).toBeGreaterThanOrEqual(
    Date.parse(String(statusOf(ended, 'last').state?.terminated?.finishedAt)),
  );
  await lifepod.delete('pod', 'critical', 'makes-way', '--now');
});

test('the scheduler preempts a Pod of a lower priority, and the defer containers of this Pod run first', async () => {
  await lifepod.kubectlOk('create', 'priorityclass', 'gold', '--value=1000', '--description=first');
  expect(await lifepod.kubectlOk('get', 'pc')).toMatch(
    /^system-node-critical +2000001000 +false +\S+ +PreemptLowerPriority$/m,
  );
  const { stderr } = await lifepod.kubectl('delete', 'pc', 'system-node-critical');
  expect(stderr).toContain('this is a system priority class and cannot be deleted');
  const { status } = await lifepod.get<Node>('node', 'node-1');
  const most = { resources: { requests: { cpu: `${Number(status?.allocatable?.['cpu']) * 1000 - 100}m` } } };
  const app = [{ name: 'app', script: WAIT, ...most }];
  await lifepod.apply(pod('common', { app, defer: [{ name: 'last', script: 'true' }] }));
  await record.until('common', isReady);
  await lifepod.apply(pod('important', { app, spec: { priorityClassName: 'gold' } }));
  await record.gone('common');
  const { pod: last } = record.history('common').at(-1) ?? {};
  expect(last && statusOf(last, 'last').state?.terminated?.reason).toBe('Completed');
  expect(last?.status?.termination?.reason).toBe('Preempted');
  const important = await record.until('important', isReady);
  expect(important.spec?.priority).toBe(1000);
  expect(record.history('important').map((seen) => seen.pod.status?.nominatedNodeName)).toContain('node-1');
  expect(await record.event('common', /Preempted/)).toBe(
    `Normal Preempted: Preempted by pod ${important.metadata.uid} on node node-1`,
  );
  await lifepod.delete('pod', 'important', '--now');
});

describe('a static Pod', () => {
  const write = (manifest: object): void =>
    writeFileSync(join(lifepod.dataDir, 'manifests', 'pod.json'), JSON.stringify(manifest));
  test('a static Pod preempts other Pods on a full node, and is rejected if it still does not fit or selects another node', async () => {
    const { status } = await lifepod.get<Node>('node', 'node-1');
    const cpus = Number(status?.allocatable?.['cpu']);
    const asking = (cpu: string) => ({ resources: { requests: { cpu } } });
    await lifepod.apply(bound('in-the-way', {}, asking(`${cpus * 1000 - 100}m`)));
    await record.until('in-the-way', isReady);
    write(pod('static', { app: [{ name: 'app', script: WAIT, ...asking('200m') }] }));
    expect(outcome(await record.until('in-the-way', inPhase('Failed')))).toEqual(PREEMPTED);
    await record.until('static-node-1', isReady);
    write(pod('giant', { app: [{ name: 'app', script: WAIT, ...asking('1000') }] }));
    expect(await rejection('giant-node-1')).toMatchObject({ reason: 'UnexpectedAdmissionError' });
    write(pod('astray', { spec: { nodeSelector: { disk: 'none' } } }));
    expect(await rejection('astray-node-1')).toEqual(
      rejected('NodeAffinity', "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"),
    );
    write(pod('back'));
    await Promise.all(['static-node-1', 'giant-node-1', 'astray-node-1'].map((name) => record.gone(name)));
    await record.until('back-node-1', isReady);
  });
});
