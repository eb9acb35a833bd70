import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { NodePods } from './node-pods.ts';

const NAMES = ['a', 'b', 'c'];
const pods: fc.Arbitrary<Pod> = fc
  .record({
    uid: fc.constantFrom(...NAMES),
    cpu: fc.option(fc.nat(5), { nil: undefined }),
    gpu: fc.option(fc.nat(3), { nil: undefined }),
    hostPort: fc.constantFrom(0, 80, 81),
    hostIP: fc.constantFrom('', '10.0.0.1'),
    claims: fc.uniqueArray(fc.constantFrom('x', 'y'), { maxLength: 2 }),
    phase: fc.constantFrom('Running', 'Running', 'Succeeded'),
  })
  .map(({ uid, cpu, gpu, hostPort, hostIP, claims, phase }) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, namespace: 'default', uid },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'x',
          resources: {
            requests: {
              ...(cpu === undefined ? {} : { cpu: String(cpu) }),
              ...(gpu === undefined ? {} : { 'example.com/gpu': String(gpu) }),
            },
          },
          ports: [{ containerPort: 80, hostPort, hostIP }],
        },
      ],
      volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    },
    status: { phase },
  }));
const changes = fc.array(fc.oneof({ arbitrary: pods, weight: 3 }, fc.constantFrom(...NAMES)), { maxLength: 12 });

const readOf = (onNode: NodePods) => ({
  count: onNode.count,
  uids: [...onNode.pods].map(({ metadata }) => metadata.uid).sort(),
  requested: ['cpu', 'memory', 'example.com/gpu'].map((name) => onNode.requested(name).nano),
  scored: [onNode.scored('cpu'), onNode.scored('memory')],
  ports: ['TCP/80', 'TCP/80/0.0.0.0', 'TCP/80/10.0.0.1', 'TCP/81'].map((key) => onNode.usesPort(key)),
  claims: ['x', 'y'].map((name) => onNode.usesClaim('default', name)),
});

test('the sums of a node equal a recount of its Pods after any additions, changes and removals', () => {
  fc.assert(
    fc.property(changes, (steps) => {
      const onNode = new NodePods();
      const model = new Map<string, Pod>();
      for (const step of steps) {
        if (typeof step === 'string') {
          onNode.delete(step);
          model.delete(step);
        } else {
          onNode.set(step);
          model.set(step.metadata.uid as string, step);
        }
      }
      expect(readOf(onNode)).toEqual(readOf(new NodePods(model.values())));
    }),
  );
});

test('a terminated Pod counts for nothing', () => {
  fc.assert(
    fc.property(pods, (pod) => {
      const onNode = new NodePods([pod]);
      onNode.set({ ...pod, status: { phase: 'Failed' } });
      expect(readOf(onNode)).toEqual(readOf(new NodePods()));
    }),
  );
});
