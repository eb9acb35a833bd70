/** Which effect of an action an observation must show. */
import { expect, it } from 'vitest';
import type { Action, ContainerState, SandboxState } from '../../lifecycle/types.ts';
import { missingEffect, shows } from './worker-effects.ts';

const sandbox: SandboxState = { id: 's', attempt: 0, ready: true, stopped: false, createdAt: 0, ips: [] };
const run = (state: ContainerState['state']): ContainerState => ({
  ...{ id: 'c', sandboxId: 's', name: 'app', kind: 'app', attempt: 0, state, createdAt: 0 },
  ...{ image: 'i', imageId: 'sha', backoffSeconds: 0 },
});
const stop: Action = { kind: 'stopContainer', id: 'c', deadline: 0 };
const remove: Action = { kind: 'removeContainer', id: 'c', container: 'app', attempt: 0 };
const start: Action = {
  ...{ kind: 'startContainer', container: 'app', containerKind: 'app', attempt: 0, sandboxId: 's' },
  ...{ image: 'i', imageId: 'sha', backoffSeconds: 0 },
};
const stopped: SandboxState = { ...sandbox, ready: false, stopped: true };
const stopSandbox: Action = { kind: 'stopSandbox', id: 's' };
const removeSandbox: Action = { kind: 'removeSandbox', id: 's' };
const createSandbox: Action = { kind: 'createSandbox', attempt: 0 };

it.each<[string, Action, ContainerState[], SandboxState[], string | undefined]>([
  ['a stopped container runs on', stop, [run('running')], [sandbox], 'container c still runs'],
  ['a stopped container in the state unknown may run on', stop, [run('unknown')], [sandbox], 'container c still runs'],
  ['a stopped container has exited', stop, [run('exited')], [sandbox], undefined],
  ['a stopped container is gone', stop, [], [sandbox], undefined],
  ['a removed container is still there', remove, [run('exited')], [sandbox], 'container c still exists'],
  ['a removed container is gone', remove, [], [sandbox], undefined],
  ['a stopped sandbox is ready', stopSandbox, [], [sandbox], 'sandbox s is still ready'],
  ['a stopped sandbox is not', stopSandbox, [], [stopped], undefined],
  ['a removed sandbox is still there', removeSandbox, [], [stopped], 'sandbox s still exists'],
  ['a removed sandbox is gone', removeSandbox, [], [], undefined],
  ['a created sandbox does not exist', createSandbox, [], [], 'the sandbox does not exist'],
  ['a created sandbox exists', createSandbox, [], [sandbox], undefined],
  ['a started container does not exist', start, [], [sandbox], 'container app does not exist'],
  ['a started container has not started', start, [run('created')], [sandbox], 'container app has not started'],
  ['a started container runs', start, [run('running')], [sandbox], undefined],
])('%s', (_, action, containers, sandboxes, expected) => {
  expect(missingEffect({ containers, sandboxes }, action)).toEqual(expected);
});

it.each<[string, Action, ContainerState[], SandboxState[], boolean]>([
  ['a stopped container that runs is not', stop, [run('running')], [sandbox], false],
  ['a stopped container that has exited is', stop, [run('exited')], [sandbox], true],
  ['a stopped sandbox with a container that runs is not', stopSandbox, [run('running')], [stopped], false],
  ['a stopped sandbox whose containers have exited is', stopSandbox, [run('exited')], [stopped], true],
  ['a stopped sandbox that is ready is not', stopSandbox, [run('exited')], [sandbox], false],
  ['a run that has begun is not', start, [run('running')], [sandbox], false],
  ['a run that has ended is', start, [run('exited')], [sandbox], true],
  ['an earlier run is not', start, [{ ...run('exited'), attempt: 1 }], [sandbox], false],
])('what shows at once: %s', (_, action, containers, sandboxes, expected) => {
  expect(shows({ containers, sandboxes }, action)).toBe(expected);
});

it('the effects of the actions on thousands of containers are looked up, and not searched for', () => {
  const count = 2000;
  let looks = 0;
  const containers = Array.from({ length: count }, (_, index): ContainerState => {
    const { id: _id, ...rest } = run('exited');
    const counted = {
      get id() {
        looks++;
        return `c${index}`;
      },
    };
    return Object.assign(counted, { ...rest, name: `app${index}` });
  });
  const view = { containers, sandboxes: [sandbox] };
  for (let index = 0; index < count; index++) {
    expect(shows(view, { ...stop, id: `c${index}` })).toBe(true);
    expect(missingEffect(view, { ...remove, id: `c${index}` })).toBe(`container c${index} still exists`);
  }
  expect(looks).toBeLessThan(10 * count);
});
