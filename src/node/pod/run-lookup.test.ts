import { expect, it } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerState } from '../../lifecycle/types.ts';
import { createRunLookup } from './run-lookup.ts';

const lookup = (logEnded: (id: string) => Promise<void> = async () => undefined) =>
  createRunLookup({ logsRoot: '/logs', podOf: () => ({ metadata: { name: 'p' } }) as Pod, logEnded });

const runOf = (name: string, state: ContainerState['state']): ContainerState => ({
  id: `id-${name}`,
  sandboxId: 's',
  name,
  kind: 'app',
  attempt: 0,
  state,
  createdAt: 0,
  image: 'i',
  imageId: 'sha',
  backoffSeconds: 0,
});

it('a run lookup finds the ends of thousands of runs in linear time', async () => {
  const count = 2000;
  let looks = 0;
  const countedRun = (index: number, state: ContainerState['state']): ContainerState => ({
    ...runOf(`app${index}`, state),
    get id() {
      looks++;
      return `c${index}`;
    },
  });
  const runs = lookup();
  const observed = (stateOf: (index: number) => ContainerState['state']): void => {
    const containers = Array.from({ length: count }, (_, index) => countedRun(index, stateOf(index)));
    runs.observed('u', { sandboxes: [], containers });
  };
  observed(() => 'running');
  const ends: string[] = [];
  for (const name of ['app1', 'app2'])
    void runs
      .logs('u', name)
      ?.attempts[0]?.ended()
      .then(() => ends.push(name));
  looks = 0;
  observed((index) => (index === 1 ? 'exited' : 'running'));
  expect(looks).toBeLessThan(10 * count);
  await new Promise(setImmediate);
  expect(ends).toEqual(['app1']);
});

it.each(['running', 'exited'] as const)(
  'a log of a run that was %s ends once the runtime has written all of it',
  async (state) => {
    const written = Promise.withResolvers<void>();
    const asked: string[] = [];
    const runs = lookup((id) => {
      asked.push(id);
      return written.promise;
    });
    runs.observed('u', { sandboxes: [], containers: [runOf('app', state)] });
    let ended = false;
    void runs
      .logs('u', 'app')
      ?.attempts[0]?.ended()
      .then(() => {
        ended = true;
      });
    await new Promise(setImmediate);
    expect(asked).toEqual(state === 'running' ? [] : ['id-app']);
    runs.observed('u', { sandboxes: [], containers: [runOf('app', 'exited')] });
    await new Promise(setImmediate);
    expect([asked, ended]).toEqual([['id-app'], false]);
    written.resolve();
    await new Promise(setImmediate);
    expect(ended).toBe(true);
  },
);

it('a log ends even if the wait for its last output fails', async () => {
  const runs = lookup(() => Promise.reject(new Error('the node ends')));
  runs.observed('u', { sandboxes: [], containers: [runOf('app', 'exited')] });
  await expect(runs.logs('u', 'app')?.attempts[0]?.ended()).resolves.toBeUndefined();
});
