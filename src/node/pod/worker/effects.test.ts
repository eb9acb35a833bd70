import { expect, it } from 'vitest';
import type { Action, ContainerState, SandboxState } from '../../../lifecycle/types.ts';
import { missingEffect, shows } from './effects.ts';

const sandbox: SandboxState = { id: 's', attempt: 0, ready: true, stopped: false, createdAt: 0, ips: [] };
const run = (state: ContainerState['state']): ContainerState => ({
  id: 'c',
  sandboxId: 's',
  name: 'app',
  kind: 'app',
  attempt: 0,
  state,
  createdAt: 0,
  image: 'i',
  imageId: 'sha',
  backoffSeconds: 0,
});
const stop: Action = { kind: 'stopContainer', id: 'c', deadline: 0 };
const remove: Action = { kind: 'removeContainer', id: 'c', container: 'app', attempt: 0 };
const start: Action = {
  kind: 'startContainer',
  container: 'app',
  containerKind: 'app',
  attempt: 0,
  sandboxId: 's',
  image: 'i',
  imageId: 'sha',
  backoffSeconds: 0,
};
const stopped: SandboxState = { ...sandbox, ready: false, stopped: true };
const stopSandbox: Action = { kind: 'stopSandbox', id: 's' };
const removeSandbox: Action = { kind: 'removeSandbox', id: 's' };
const createSandbox: Action = { kind: 'createSandbox', attempt: 0 };

it.each<[string, Action, ContainerState[], SandboxState[], string | undefined]>([
  ['a running container after stopContainer', stop, [run('running')], [sandbox], 'container c still runs'],
  ['a container in state unknown after stopContainer', stop, [run('unknown')], [sandbox], 'container c still runs'],
  ['an exited container after stopContainer', stop, [run('exited')], [sandbox], undefined],
  ['no container after stopContainer', stop, [], [sandbox], undefined],
  ['an exited container after removeContainer', remove, [run('exited')], [sandbox], 'container c still exists'],
  ['no container after removeContainer', remove, [], [sandbox], undefined],
  ['a ready sandbox after stopSandbox', stopSandbox, [], [sandbox], 'sandbox s is still ready'],
  ['a stopped sandbox after stopSandbox', stopSandbox, [], [stopped], undefined],
  ['a stopped sandbox after removeSandbox', removeSandbox, [], [stopped], 'sandbox s still exists'],
  ['no sandbox after removeSandbox', removeSandbox, [], [], undefined],
  ['no sandbox after createSandbox', createSandbox, [], [], 'the sandbox does not exist'],
  ['a ready sandbox after createSandbox', createSandbox, [], [sandbox], undefined],
  ['no container after startContainer', start, [], [sandbox], 'container app does not exist'],
  ['a created container after startContainer', start, [run('created')], [sandbox], 'container app has not started'],
  ['a running container after startContainer', start, [run('running')], [sandbox], undefined],
])('missingEffect() with %s returns $4', (_, action, containers, sandboxes, expected) => {
  expect(missingEffect({ containers, sandboxes }, action)).toEqual(expected);
});

it.each<[string, Action, ContainerState[], SandboxState[], boolean]>([
  ['a running container after stopContainer', stop, [run('running')], [sandbox], false],
  ['an exited container after stopContainer', stop, [run('exited')], [sandbox], true],
  ['a stopped sandbox with a running container after stopSandbox', stopSandbox, [run('running')], [stopped], false],
  ['a stopped sandbox with an exited container after stopSandbox', stopSandbox, [run('exited')], [stopped], true],
  ['a ready sandbox with an exited container after stopSandbox', stopSandbox, [run('exited')], [sandbox], false],
  ['a running container after startContainer', start, [run('running')], [sandbox], false],
  ['an exited container after startContainer', start, [run('exited')], [sandbox], true],
  [
    'an exited container of another attempt after startContainer',
    start,
    [{ ...run('exited'), attempt: 1 }],
    [sandbox],
    false,
  ],
])('shows() with %s returns $4', (_, action, containers, sandboxes, expected) => {
  expect(shows({ containers, sandboxes }, action)).toBe(expected);
});

it('missingEffect() and shows() find the effects of actions on thousands of containers in linear time', () => {
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
