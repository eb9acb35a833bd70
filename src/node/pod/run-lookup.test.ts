import { expect, it } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerState } from '../../lifecycle/types.ts';
import { createRunLookup } from './run-lookup.ts';

it('a run lookup finds the ends of thousands of runs in linear time', async () => {
  const count = 2000;
  let looks = 0;
  const runOf = (index: number, state: ContainerState['state']): ContainerState => ({
    get id() {
      looks++;
      return `c${index}`;
    },
    sandboxId: 's',
    name: `app${index}`,
    kind: 'app',
    attempt: 0,
    state,
    createdAt: 0,
    image: 'i',
    imageId: 'sha',
    backoffSeconds: 0,
  });
  const runs = createRunLookup('/logs', () => ({ metadata: { name: 'p' } }) as Pod);
  const observed = (stateOf: (index: number) => ContainerState['state']): void => {
    const containers = Array.from({ length: count }, (_, index) => runOf(index, stateOf(index)));
    runs.observed('u', { sandboxes: [], containers });
  };
  observed(() => 'running');
  const ends: string[] = [];
  for (const name of ['app1', 'app2']) void runs.logs('u', name)?.attempts[0]?.ended.then(() => ends.push(name));
  looks = 0;
  observed((index) => (index === 1 ? 'exited' : 'running'));
  expect(looks).toBeLessThan(10 * count);
  await Promise.resolve();
  expect(ends).toEqual(['app1']);
});
