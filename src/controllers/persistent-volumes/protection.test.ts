import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CLAIM_PROTECTION } from '../../api/core/v1/persistent-volume-claim/index.ts';
import type { Binding, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { startPersistentVolumes } from './persistent-volumes.ts';
import { createClaimProtection } from './protection.ts';

let backend: RegistryBackend;
let stop: AbortController;
beforeEach(async () => {
  backend = await registryBackend();
  stop = new AbortController();
});
afterEach(() => stop.abort());

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const claim = (index: number): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: `c${index}`, namespace: 'a' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
});
/** The finalizer keeps the deleted claim in the API. */
const createTerminating = async (index: number): Promise<void> => {
  await backend.set(PERSISTENT_VOLUME_CLAIMS, claim(index));
  await backend.remove(PERSISTENT_VOLUME_CLAIMS, 'a', `c${index}`);
};
const bind = async (name: string): Promise<void> => {
  const target = { apiVersion: 'v1', kind: 'Node', name: 'n' };
  const binding: Binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target };
  await backend.create(PODS, 'a', binding, { name, subresource: 'binding' });
};
const pod = (name: string, claims: readonly number[], nodeName?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a' },
  spec: {
    nodeName,
    containers: [{ name: 'app', image: 'x' }],
    volumes: claims.map((index) => ({ name: `v${index}`, persistentVolumeClaim: { claimName: `c${index}` } })),
  },
});
const held = (): string[] =>
  backend
    .objects(PERSISTENT_VOLUME_CLAIMS)
    .filter(({ metadata }) => metadata.finalizers?.includes(CLAIM_PROTECTION))
    .map(({ metadata }) => metadata.name);
const client = () => clientOf(backend);

it('claims are released once no Pod on a node uses them, without a list of Pods for each claim', async () => {
  const count = 200;
  for (const index of numbers(count)) await createTerminating(index);
  await backend.set(PODS, pod('first', numbers(count / 2), 'n'));
  await backend.set(PODS, pod('second', [0, 1], 'n'));
  await backend.set(PODS, pod('waits', numbers(count)));
  void startPersistentVolumes({
    ...withInformers({ client: client(), timers: createVirtualTimers(), log: silentLog }),

    signal: stop.signal,
    folders: {
      nodeName: 'n',
      path: (name) => `/${name}`,
      create: async () => {},
      remove: async () => {},
      removeUnused: async () => {},
    },
  });
  await vi.waitFor(() =>
    expect(held()).toEqual(
      numbers(count / 2)
        .map((index) => `c${index}`)
        .sort(),
    ),
  );
  await backend.remove(PODS, 'a', 'first');
  await vi.waitFor(() => expect(held()).toEqual(['c0', 'c1']));
  // The Pod `waits` is bound while claims that it uses are terminating.
  await bind('waits');
  await backend.remove(PODS, 'a', 'second');
  await createTerminating(count);
  await vi.waitFor(() => expect(held()).toEqual(['c0', 'c1']));
  await backend.remove(PODS, 'a', 'waits');
  await vi.waitFor(() => expect(held()).toEqual([]));
  expect(backend.calls.filter((call) => call.startsWith('list pods')).length).toBeLessThan(count / 4);
});

it('a claim is kept if a Pod uses it that the informer has not seen, or not seen bound', async () => {
  const known = new Map<string, Pod>();
  const protection = createClaimProtection(
    client().resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS),
    client().resource<Pod>(PODS),
    (_, name) => known.get(name),
  );
  for (const index of numbers(4)) await createTerminating(index);
  const see = (each: Pod): void => {
    known.set(each.metadata.name, each);
    protection.put(each);
  };
  await backend.set(PODS, pod('unseen', [0], 'n'));
  see(await backend.set(PODS, pod('was-bound', [1])));
  await bind('was-bound');
  see(await backend.set(PODS, pod('seen', [2], 'n')));
  await Promise.all(
    (backend.objects(PERSISTENT_VOLUME_CLAIMS) as PersistentVolumeClaim[]).map((each) => protection.release(each)),
  );
  expect(held()).toEqual(['c0', 'c1', 'c2']);
});
