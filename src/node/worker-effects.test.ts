/** Which effect of an action an observation must show. */
import { expect, it } from 'vitest';
import type { Action, ContainerState, SandboxState } from '../lifecycle/types.ts';
import { missingEffect } from './worker-effects.ts';

const sandbox: SandboxState = { id: 's', attempt: 0, ready: true, stopped: false, createdAt: 0, ips: [] };
const run = (state: ContainerState['state']): ContainerState => ({
  ...{ id: 'c', sandboxId: 's', name: 'app', kind: 'app', attempt: 0, state, createdAt: 0 },
  ...{ image: 'i', imageId: 'sha', backoffSeconds: 0 },
});
const stop: Action = { kind: 'stopContainer', id: 'c', deadline: 0 };
const remove: Action = { kind: 'removeContainer', id: 'c', container: 'app', attempt: 0 };
const stopSandbox: Action = { kind: 'stopSandbox', id: 's' };

it.each<[string, Action, ContainerState[], SandboxState[], string | undefined]>([
  ['a stopped container runs on', stop, [run('running')], [sandbox], 'container c still runs'],
  ['a stopped container in the state unknown may run on', stop, [run('unknown')], [sandbox], 'container c still runs'],
  ['a stopped container has exited', stop, [run('exited')], [sandbox], undefined],
  ['a stopped container is gone', stop, [], [sandbox], undefined],
  ['a removed container is still there', remove, [run('exited')], [sandbox], 'container c still exists'],
  ['a removed container is gone', remove, [], [sandbox], undefined],
  ['a stopped sandbox is ready', stopSandbox, [], [sandbox], expect.stringContaining('sandbox s') as never],
  ['a stopped sandbox is not', stopSandbox, [], [{ ...sandbox, ready: false, stopped: true }], undefined],
])('%s', (_, action, containers, sandboxes, expected) => {
  expect(missingEffect({ containers, sandboxes }, action)).toEqual(expected);
});
