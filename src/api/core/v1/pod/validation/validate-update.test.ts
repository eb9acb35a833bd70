import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { PodSpec, PodStatus } from '../../../../generated/types.ts';
import { containerOf, defaulted, podOf, statusOf } from '../pod-fixtures.ts';
import { preparePodForCreate } from '../strategy.ts';
import { validatePodStatusUpdate } from './validate-status.ts';
import { validatePodUpdate } from './validate-update.ts';

const stored = (spec: Partial<PodSpec>) => {
  const pod = defaulted(podOf({ initContainers: [containerOf('init')], ...spec }));
  pod.metadata.resourceVersion = '1';
  preparePodForCreate(pod, { now: 0 });
  return pod;
};
const update = (before: Partial<PodSpec>, change: (spec: PodSpec) => void): string[] => {
  const old = stored(before);
  const pod = structuredClone(old);
  if (pod.spec) change(pod.spec);
  return validatePodUpdate(pod, old).map(fieldErrorText);
};

const onlyThese =
  'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n';

describe('update of a Pod', () => {
  it.each<[string, Partial<PodSpec>, (spec: PodSpec) => void, ...string[]]>([
    ['may change nothing', {}, () => {}],
    [
      'may change images',
      {},
      (spec) => {
        for (const container of [...spec.containers, ...(spec.initContainers ?? [])]) container.image = 'busybox:2';
      },
    ],
    [
      'may not empty an image',
      {},
      (spec) => Object.assign(spec.containers[0] ?? {}, { image: '' }),
      'spec.containers[0].image: Required value',
    ],
    [
      'may not add a container',
      {},
      (spec) =>
        spec.containers.push({ ...containerOf('b'), imagePullPolicy: 'Always', terminationMessagePolicy: 'File' }),
      'spec.containers: Forbidden: pod updates may not add or remove containers',
    ],
    [
      'may set a deadline',
      {},
      (spec) => {
        spec.activeDeadlineSeconds = 9;
      },
    ],
    [
      'may lower a deadline',
      { activeDeadlineSeconds: 9 },
      (spec) => {
        spec.activeDeadlineSeconds = 8;
      },
    ],
    [
      'may not raise a deadline',
      { activeDeadlineSeconds: 9 },
      (spec) => {
        spec.activeDeadlineSeconds = 10;
      },
      'spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to previous value',
    ],
    [
      'may not remove a deadline',
      { activeDeadlineSeconds: 9 },
      (spec) => {
        spec.activeDeadlineSeconds = undefined;
      },
      'spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value',
    ],
    [
      'may add a toleration',
      {},
      (spec) => {
        spec.tolerations?.unshift({ key: 'a', operator: 'Exists' });
      },
    ],
    [
      'may not remove a toleration',
      {},
      (spec) => {
        spec.tolerations?.shift();
      },
      'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
    ],
    [
      'may remove a scheduling gate',
      { schedulingGates: [{ name: 'a' }] },
      (spec) => {
        spec.schedulingGates = [];
      },
    ],
    [
      'may not add a scheduling gate',
      {},
      (spec) => {
        spec.schedulingGates = [{ name: 'a' }];
      },
      "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'",
    ],
    [
      'may narrow the node selector while the Pod has scheduling gates',
      { schedulingGates: [{ name: 'a' }], nodeSelector: { a: 'b' } },
      (spec) => {
        spec.nodeSelector = { a: 'b', c: 'd' };
      },
    ],
    [
      'may not change the node selector otherwise while the Pod has scheduling gates',
      { schedulingGates: [{ name: 'a' }], nodeSelector: { a: 'b' } },
      (spec) => {
        spec.nodeSelector = { a: 'c' };
      },
      'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
    ],
    [
      'may not change the node selector without scheduling gates',
      {},
      (spec) => {
        spec.nodeSelector = { a: 'b' };
      },
      `${onlyThese}spec.nodeSelector: unset -> {"a":"b"}\n`,
    ],
    [
      'may not change other fields',
      {},
      (spec) => {
        spec.hostname = 'b';
        (spec.containers[0] ?? containerOf('')).command = ['x'];
      },
      `${onlyThese}spec.containers[0].command: unset -> ["x"]\nspec.hostname: unset -> "b"\n`,
    ],
    [
      'may not change the grace period',
      {},
      (spec) => {
        spec.terminationGracePeriodSeconds = 1;
      },
      `${onlyThese}spec.terminationGracePeriodSeconds: 30 -> 1\n`,
    ],
    [
      'may change a negative grace period to 1',
      { terminationGracePeriodSeconds: -1 },
      (spec) => {
        spec.terminationGracePeriodSeconds = 1;
      },
    ],
    [
      'treats an empty list like an absent one',
      {},
      (spec) => {
        spec.imagePullSecrets = [];
      },
    ],
  ])('an update of a Pod %s', (_name, before, change, ...expected) => {
    expect(update(before, change)).toEqual(expected);
  });

  it('an update of a Pod may not change the name', () => {
    const old = stored({});
    const pod = structuredClone(old);
    pod.metadata.name = 'other';
    expect(validatePodUpdate(pod, old).map(fieldErrorText)).toContain(
      'metadata.name: Invalid value: "other": field is immutable',
    );
  });
});

describe('update of the status of a Pod', () => {
  const ended = (exitCode: number) => statusOf('app', { state: { terminated: { exitCode } } });
  const running = statusOf('app', { state: { running: {} } });
  it.each<[string, Partial<PodSpec>, PodStatus, PodStatus, ...string[]]>([
    [
      'may not restart a container of a Pod with restartPolicy Never',
      { restartPolicy: 'Never' },
      { containerStatuses: [ended(1)] },
      { containerStatuses: [running] },
      'status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state',
    ],
    [
      'may restart a failed container with restartPolicy OnFailure',
      { restartPolicy: 'OnFailure' },
      { containerStatuses: [ended(1)] },
      { containerStatuses: [running] },
    ],
    [
      'may not restart a successful container with restartPolicy OnFailure',
      { restartPolicy: 'OnFailure' },
      { containerStatuses: [ended(0)] },
      { containerStatuses: [running] },
      'status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state',
    ],
    [
      'may restart a sidecar',
      { restartPolicy: 'Never', initContainers: [containerOf('app2', { restartPolicy: 'Always' })] },
      { initContainerStatuses: [{ ...ended(0), name: 'app2' }] },
      { initContainerStatuses: [{ ...running, name: 'app2' }] },
    ],
    [
      'may not change the QoS class',
      {},
      { qosClass: 'BestEffort' },
      { qosClass: 'Burstable' },
      'status.qosClass: Invalid value: "Burstable": field is immutable',
    ],
    [
      'may have only one address of an IP family',
      {},
      {},
      { podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] },
      'status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]: may specify no more than one IP for each IP family',
    ],
    [
      'may have addresses of two IP families',
      {},
      {},
      { hostIP: '10.0.0.1', hostIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] },
    ],
    [
      'must have valid types of conditions',
      {},
      {},
      { conditions: [{ type: 'a b', status: 'True' }] },
      "metadata.conditions[0].Type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ])('the status of a Pod %s', (_name, spec, before, after, ...expected) => {
    const old = { ...stored(spec), status: before };
    const pod = { ...structuredClone(old), status: after };
    expect(validatePodStatusUpdate(pod, old).map(fieldErrorText)).toEqual(expected);
  });
});
