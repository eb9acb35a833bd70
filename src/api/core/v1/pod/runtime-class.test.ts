import { describe, expect, it } from 'vitest';
import type { PodSpec, RuntimeClass } from '../../../generated/types.ts';
import { podOf } from './pod-fixtures.ts';
import { admitRuntimeClass } from './runtime-class.ts';

const sandboxed: RuntimeClass = {
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name: 'sandboxed' },
  handler: 'other',
  overhead: { podFixed: { cpu: '100m', memory: '64Mi' } },
  scheduling: { nodeSelector: { kvm: 'yes' }, tolerations: [{ key: 'kvm', operator: 'Exists' }] },
};
const admitted = (spec: Partial<PodSpec>, runtimeClass?: RuntimeClass): PodSpec => {
  const pod = podOf(spec);
  admitRuntimeClass(pod, runtimeClass);
  return pod.spec as PodSpec;
};

describe('RuntimeClass admission', () => {
  it('the overhead, node selector and tolerations of the RuntimeClass are added to those of the Pod', () => {
    const own = { key: 'own', operator: 'Exists' };
    expect(
      admitted({ runtimeClassName: 'sandboxed', nodeSelector: { a: 'b' }, tolerations: [own] }, sandboxed),
    ).toMatchObject({
      overhead: { cpu: '100m', memory: '64Mi' },
      nodeSelector: { a: 'b', kvm: 'yes' },
      tolerations: [own, { key: 'kvm', operator: 'Exists' }],
    });
  });

  it('a Pod may already contain the overhead and tolerations of its RuntimeClass', () => {
    const spec = { runtimeClassName: 'sandboxed', overhead: { memory: '65536Ki', cpu: '0.1' } };
    expect(
      admitted({ ...spec, tolerations: [{ key: 'kvm', operator: 'Exists' }] }, sandboxed).tolerations,
    ).toHaveLength(1);
  });

  it.each<[string, Partial<PodSpec>, RuntimeClass | undefined, string]>([
    ['does not exist', { runtimeClassName: 'none' }, undefined, 'pod rejected: RuntimeClass "none" not found'],
    [
      'has a different overhead',
      { runtimeClassName: 'sandboxed', overhead: { cpu: '1' } },
      sandboxed,
      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    ],
    [
      'is not set, but overhead is',
      { overhead: { cpu: '1' } },
      undefined,
      'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    ],
    [
      'selects different nodes',
      { runtimeClassName: 'sandboxed', nodeSelector: { kvm: 'no' } },
      sandboxed,
      'conflict: runtimeClass.scheduling.nodeSelector[kvm] = yes; pod.spec.nodeSelector[kvm] = no',
    ],
  ])('a Pod is rejected if its RuntimeClass %s', (_what, spec, runtimeClass, message) => {
    expect(() => admitted(spec, runtimeClass)).toThrow(message);
  });

  it('a Pod without a RuntimeClass is not changed', () => {
    expect(admitted({})).toEqual(podOf({}).spec);
  });
});
