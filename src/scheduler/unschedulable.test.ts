import { expect, test } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { createUnschedulable } from './unschedulable.ts';

const pod = (name: string, spec: object = {}): Pod =>
  ({ metadata: { name, namespace: 'a' }, spec: { containers: [], ...spec } }) as unknown as Pod;
const withClaim = (name: string, claimName: string): Pod =>
  pod(name, { volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }] });
const withEphemeral = (name: string): Pod => pod(name, { volumes: [{ name: 'v', ephemeral: {} }] });

function setUp(...all: Pod[]) {
  const pods = new Map(all.map((each) => [`a/${each.metadata.name}`, each]));
  const tried: string[] = [];
  let looks = 0;
  const unschedulable = createUnschedulable({
    pod(key) {
      looks++;
      return pods.get(key);
    },
    retry: (key) => tried.push(key.slice(2)),
  });
  for (const key of pods.keys()) unschedulable.add(key);
  const after = async (change: () => void): Promise<string> => {
    change();
    await new Promise(setImmediate);
    return tried.splice(0).join(' ');
  };
  return { ...unschedulable, after, looks: () => looks };
}

test('a change of a claim retries only the Pods that use it', async () => {
  const { after, retryWithClaim } = setUp(pod('x'), withClaim('y', 'c'), withClaim('z', 'd'), withEphemeral('e'));
  expect(await after(() => retryWithClaim('a', 'c'))).toBe('y');
  expect(await after(() => retryWithClaim('a', 'e-v'))).toBe('e');
  expect(await after(() => retryWithClaim('b', 'c'))).toBe('');
});

test('a change of a volume or a class retries only the Pods that use claims', async () => {
  const { after, retryWithClaims, retryWithClaim } = setUp(pod('x'), withClaim('y', 'c'), withEphemeral('e'));
  expect(await after(retryWithClaims)).toBe('y e');
  expect(await after(() => retryWithClaim('a', 'none'))).toBe('');
});

test('a change of other Pods retries only the Pods with rules about other Pods', async () => {
  const { after, add, delete: remove, looks, retryDependent } = setUp(pod('x'), pod('y'));
  expect(await after(retryDependent)).toBe('');
  expect(looks()).toBe(0);
  add('a/y', { dependsOnPods: true });
  expect(await after(retryDependent)).toBe('y');
  remove('a/y');
  expect(await after(retryDependent)).toBe('');
});

test('many changes in one turn of the event loop cause one pass over the Pods, which retries high priorities first', async () => {
  const { after, looks, retryAll, retryWithClaims, retryWithClaim } = setUp(
    pod('low', { priority: 1 }),
    pod('high', { priority: 9 }),
    pod('middle', { priority: 5 }),
  );
  const changes = (): void => {
    for (let index = 0; index < 1000; index++) {
      retryWithClaim('a', `claim-${index}`);
      retryWithClaims();
      retryAll();
    }
  };
  expect(await after(changes)).toBe('high middle low');
  expect(looks()).toBe(3);
});
