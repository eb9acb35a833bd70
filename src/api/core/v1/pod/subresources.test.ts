import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import { ApiError } from '../../../../machinery/status.ts';
import type { Binding, EphemeralContainer, Pod } from '../../../generated/types.ts';
import { containerOf, defaulted, deferOf, podOf } from './pod-fixtures.ts';
import { podSubresources } from './subresources.ts';

const context = { now: Date.parse('2026-01-01T00:00:10Z') };
const apply = (name: string, old: Pod, body: Pod | Binding): Pod => {
  const pod = podSubresources[name]?.apply?.(old, body, context);
  if (pod === undefined) throw new Error(`${name} has no apply()`);
  return pod;
};
const stored = (change: (pod: Pod) => void = () => {}): Pod => {
  const pod = defaulted(podOf({}, { phase: 'Pending', qosClass: 'BestEffort' }));
  pod.metadata.resourceVersion = '1';
  change(pod);
  return pod;
};

describe('status subresource', () => {
  it('the status subresource changes only the status, without the QoS class', () => {
    const old = stored((pod) => {
      pod.metadata.labels = { a: 'b' };
    });
    const body = structuredClone(old);
    delete body.metadata.labels;
    body.metadata.ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'y' }];
    if (body.spec) body.spec.nodeName = 'elsewhere';
    body.status = { phase: 'Running' };
    expect(apply('status', old, body)).toEqual({ ...old, status: { phase: 'Running', qosClass: 'BestEffort' } });
  });

  it('the status subresource changes annotations that are sent with the status', () => {
    const old = stored();
    const body = structuredClone(old);
    body.metadata.annotations = { seen: 'yes' };
    expect(apply('status', old, body).metadata.annotations).toEqual({ seen: 'yes' });
  });
});

describe('binding subresource', () => {
  const binding = (more: Partial<Binding> = {}): Binding => ({
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name: 'web' },
    target: { kind: 'Node', name: 'node-1' },
    ...more,
  });
  const failure = (old: Pod, body: Binding): unknown => {
    try {
      return apply('binding', old, body);
    } catch (error) {
      return error instanceof ApiError ? [error.code, error.message] : error;
    }
  };

  it('the binding subresource sets the node and the condition PodScheduled', () => {
    const old = stored();
    const pod = apply('binding', old, binding());
    expect(pod.spec?.nodeName).toBe('node-1');
    expect(pod.status?.conditions).toEqual([
      { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-01-01T00:00:10Z' },
    ]);
    expect(old.spec?.nodeName).toBeUndefined();
  });

  it('the binding subresource replaces the condition that the Pod could not be scheduled', () => {
    const failed = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime: 'before' };
    const old = stored((pod) => {
      pod.status = { ...pod.status, conditions: [failed] };
    });
    expect(apply('binding', old, binding()).status?.conditions).toEqual([
      { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-01-01T00:00:10Z' },
    ]);
  });

  const refused = 'Operation cannot be fulfilled on pods/binding "web": ';
  it.each<[string, (pod: Pod) => void, Partial<Binding>, number, string]>([
    [
      'a bound Pod',
      (pod) => Object.assign(pod.spec ?? {}, { nodeName: 'node-0' }),
      {},
      409,
      `${refused}pod web is already assigned to node "node-0"`,
    ],
    [
      'a terminating Pod',
      (pod) => Object.assign(pod.metadata, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      {},
      409,
      `${refused}pod web is being deleted, cannot be assigned to a host`,
    ],
    [
      'a gated Pod',
      (pod) => Object.assign(pod.spec ?? {}, { schedulingGates: [{ name: 'a' }] }),
      {},
      409,
      `${refused}pod web has non-empty .spec.schedulingGates`,
    ],
    [
      'the UID of an earlier Pod with the same name',
      () => {},
      { metadata: { name: 'web', uid: 'u0' } },
      409,
      `${refused}Precondition failed: UID in precondition: u0, UID in object meta: u1`,
    ],
    [
      'a different name',
      () => {},
      { metadata: { name: 'other' } },
      400,
      'name in URL does not match name in Binding object',
    ],
    [
      'a target that is not a node',
      () => {},
      { target: { kind: 'Pod' } },
      422,
      'Binding "web" is invalid: [target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]',
    ],
  ])('the binding subresource rejects %s', (_name, change, body, code, message) => {
    expect(failure(stored(change), binding(body))).toEqual([code, message]);
  });
});

describe('ephemeralcontainers subresource', () => {
  const debug: EphemeralContainer = { ...containerOf('debug'), targetContainerName: 'app' };
  const errors = (old: Pod, containers: EphemeralContainer[]): string[] => {
    const body = structuredClone(old);
    if (body.spec) body.spec.ephemeralContainers = containers;
    const pod = apply('ephemeralcontainers', old, body);
    return (podSubresources['ephemeralcontainers']?.validate?.(pod, old) ?? []).map(fieldErrorText);
  };
  const withDebug = apply('ephemeralcontainers', stored(), {
    ...stored(),
    spec: { containers: [], ephemeralContainers: [debug] },
  });

  it('the ephemeralcontainers subresource adds only containers, with their defaults', () => {
    expect(withDebug.spec?.containers).toEqual(stored().spec?.containers);
    expect(withDebug.spec?.ephemeralContainers).toEqual([
      {
        ...debug,
        imagePullPolicy: 'IfNotPresent',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ]);
    expect(withDebug.metadata.generation).toBe(1);
  });

  it('a mirror Pod gets no ephemeral containers, because the node runs the static Pod from its file', () => {
    const mirror = stored((pod) => {
      pod.metadata.annotations = { 'kubernetes.io/config.mirror': 'x' };
    });
    expect(errors(mirror, [debug])).toEqual([': Forbidden: static pods do not support ephemeral containers']);
  });

  it.each<[string, Pod, EphemeralContainer[], ...string[]]>([
    ['may be kept', withDebug, [debug]],
    ['may be followed by another', withDebug, [debug, containerOf('debug2')]],
    [
      'may not be removed',
      withDebug,
      [],
      'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n',
    ],
    [
      'may not be changed',
      withDebug,
      [{ ...debug, image: 'other:1' }],
      'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed\ndebug.image: "busybox:1.28" -> "other:1"\n',
    ],
    [
      'must have a unique name',
      stored(),
      [containerOf('app')],
      'spec.ephemeralContainers[0].name: Duplicate value: "app"',
    ],
    [
      'must have an existing target',
      stored(),
      [{ ...debug, targetContainerName: 'none' }],
      'spec.ephemeralContainers[0].targetContainerName: Not found: "none"',
    ],
    [
      'may not have the name of a defer container, nor join it',
      stored((pod) => Object.assign(pod.spec ?? {}, { deferContainers: [deferOf('last')] })),
      [{ ...containerOf('last'), targetContainerName: 'last' }],
      'spec.ephemeralContainers[0].name: Duplicate value: "last"',
      'spec.ephemeralContainers[0].targetContainerName: Invalid value: "last": must not be a defer container',
    ],
    [
      'may join an init container',
      stored((pod) => Object.assign(pod.spec ?? {}, { initContainers: [containerOf('first')] })),
      [{ ...debug, targetContainerName: 'first' }],
    ],
    [
      'may not have the name of another one',
      stored(),
      [debug, debug],
      'spec.ephemeralContainers[1].name: Duplicate value: "debug"',
    ],
    [
      'may not mount a part of a volume',
      stored((pod) => Object.assign(pod.spec ?? {}, { volumes: [{ name: 'v', emptyDir: {} }] })),
      [
        {
          ...debug,
          volumeMounts: [
            { name: 'v', mountPath: '/a' },
            { name: 'v', mountPath: '/b', subPath: 'x' },
            { name: 'v', mountPath: '/c', subPathExpr: 'x' },
          ],
        },
      ],
      'spec.ephemeralContainers[0].volumeMounts[1].subPath: Forbidden: cannot be set for an Ephemeral Container',
      'spec.ephemeralContainers[0].volumeMounts[2].subPathExpr: Forbidden: cannot be set for an Ephemeral Container',
    ],
    [
      'may not have probes, ports or resources',
      stored(),
      [
        {
          ...debug,
          ports: [{ containerPort: 1 }],
          resources: { limits: { cpu: '1' } },
          readinessProbe: { exec: { command: ['x'] } },
        },
      ],
      'spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container',
      'spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container',
      'spec.ephemeralContainers[0].readinessProbe: Forbidden: cannot be set for an Ephemeral Container',
    ],
  ])('an ephemeral container %s', (_name, old, containers, ...expected) => {
    expect(errors(old, containers)).toEqual(expected);
  });
});
