/**
 * Tests random graphs of owners and dependents, random deletes, and a garbage collector that dies between any two writes. Safety: no object
 * that has a living owner is deleted. Liveness: finally, every object with ownerReferences has a living owner, and no object waits for the
 * garbage collector.
 */
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { CONFIG_MAPS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { configMap, ownedBy, startCollector } from './garbage-collector-fixture.ts';
import { deletionState } from './graph.ts';

const SIZE = 7;
const index = fc.nat({ max: SIZE - 1 });

interface Graph {
  /**
   * By object: the numbers of its owners, and whether the object blocks each of them. The object's own number stands for an owner that does
   * not exist.
   */
  owners: [number, boolean][][];
  deletes: { object: number; policy: 'Background' | 'Foreground' | 'Orphan' }[];
  /** How many writes each garbage collector survives. The last one does not die. */
  lives: number[];
}

const graphs: fc.Arbitrary<Graph> = fc.record({
  owners: fc.array(fc.uniqueArray(fc.tuple(index, fc.boolean()), { maxLength: 3, selector: ([owner]) => owner }), {
    minLength: SIZE,
    maxLength: SIZE,
  }),
  deletes: fc.array(fc.record({ object: index, policy: fc.constantFrom('Background', 'Foreground', 'Orphan') }), {
    minLength: 1,
    maxLength: 4,
  }),
  lives: fc.array(fc.nat({ max: 4 }), { maxLength: 4 }),
});

const living = (backend: RegistryBackend): Map<string, KubeObject> =>
  new Map(backend.objects(CONFIG_MAPS).map((object) => [uidOf(object), object]));

/** Whether the object has an owner that exists and does not wait for the deletion of its dependents. */
const hasLivingOwner = (backend: RegistryBackend, { metadata }: KubeObject): boolean =>
  (metadata.ownerReferences ?? []).some(({ uid }) => {
    const owner = living(backend).get(uid);
    return owner !== undefined && deletionState(owner) !== 'deletingDependents';
  });

async function createGraph(backend: RegistryBackend, owners: Graph['owners']): Promise<void> {
  const made: KubeObject[] = [];
  for (let each = 0; each < SIZE; each++) made.push(await configMap(backend, `n${each}`));
  for (const [each, of] of owners.entries()) {
    const ownerReferences = of.map(([owner, blockOwnerDeletion]) => {
      const reference = ownedBy(made[owner] as KubeObject, { blockOwnerDeletion });
      return owner === each ? { ...reference, name: 'none', uid: 'none' } : reference;
    });
    if (of.length === 0) continue;
    const change = { metadata: { ownerReferences } };
    await backend.patch(CONFIG_MAPS, 'a', `n${each}`, 'application/merge-patch+json', change);
  }
}

test('a garbage collector that dies between any two writes never deletes an object with a living owner', async () => {
  await fc.assert(
    fc.asyncProperty(graphs, async ({ owners, deletes, lives }) => {
      const timers = createVirtualTimers();
      const backend = await registryBackend({ timers });
      await createGraph(backend, owners);
      const wrong: string[] = [];
      const beforeDelete = (_: unknown, __: string | undefined, name: string): void => {
        const object = backend.objects(CONFIG_MAPS).find(({ metadata }) => metadata.name === name);
        if (object !== undefined && hasLivingOwner(backend, object)) wrong.push(name);
      };
      const start = async (writes?: number) => {
        const dead = Promise.withResolvers<void>();
        const collector = startCollector(backend, { timers, beforeDelete, writes, died: dead.resolve });
        await collector.started;
        return { ...collector, dead: dead.promise };
      };
      const rest = async (): Promise<void> => {
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      };
      let current = await start(lives[0]);
      for (const [each, { object, policy }] of deletes.entries()) {
        await backend.delete(CONFIG_MAPS, 'a', `n${object}`, { propagationPolicy: policy }).catch(() => undefined);
        // The collector dies at its limit of writes, or is killed if it makes fewer writes.
        await Promise.race([current.dead, rest()]);
        current.kill();
        current = await start(lives[each + 1]);
      }
      current.kill();
      const last = await start();
      const left = () => [...living(backend).values()];
      await vi.waitFor(() => {
        expect(left().filter((object) => deletionState(object) !== 'living')).toEqual([]);
        const owned = left().filter(({ metadata }) => (metadata.ownerReferences ?? []).length > 0);
        expect(owned.filter((object) => !hasLivingOwner(backend, object))).toEqual([]);
      });
      last.kill();
      expect(wrong).toEqual([]);
    }),
    { numRuns: 60 },
  );
}, 60_000);
