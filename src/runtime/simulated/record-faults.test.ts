import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { PodIdentity } from '../runtime.ts';
import { createRecordFaults } from './record-faults.ts';
import { createRecords } from './records.ts';
import { createRuns } from './runs.ts';

const pod = { uid: 'uid', namespace: 'default', name: 'pod' };
const other = { uid: 'other', namespace: 'default', name: 'other' };

/**
 * Creates two Pods, each with a ready sandbox, and returns functions that create containers. `changes`: the UIDs of the Pods whose changes
 * were reported.
 */
function start() {
  const timers = createVirtualTimers(0);
  const changes: string[] = [];
  const changed = (uid: string): void => void changes.push(uid);
  const runs = createRuns({ timers, script: () => ({}), changed });
  const records = createRecords({ timers, runs, changed });
  const faults = createRecordFaults({ timers, runs, records, changed });
  const sandbox = { attempt: 0, hostname: 'pod', logDirectory: '/', labels: {}, annotations: {} };
  const sandboxIds = new Map([pod, other].map((each) => [each.uid, records.runSandbox({ pod: each, ...sandbox })]));
  const create = (name: string, owner: PodIdentity = pod): string => {
    const config = { name, kind: 'app', attempt: 0, imageId: 'i', imageName: 'i', logPath: 'l' } as const;
    const empty = { env: [], mounts: [], annotations: {}, resources: {}, security: {} };
    return records.createContainer(sandboxIds.get(owner.uid) ?? '', { pod: owner, ...config, ...empty });
  };
  const begin = (name: string, owner?: PodIdentity): string => {
    const id = create(name, owner);
    const run = runs.containers.get(id);
    if (run !== undefined) runs.begin(run);
    return id;
  };
  const states = ({ uid } = pod): string[] =>
    records.observe(uid).containers.map(({ name, state }) => `${name} ${state}`);
  const isReady = ({ uid }: PodIdentity): boolean | undefined => records.observe(uid).sandboxes[0]?.ready;
  return { timers, changes, runs, records, faults, create, begin, states, isReady };
}

test("a lost sandbox is not ready any more, is reported once, and leaves its containers and other Pods' sandboxes alone", () => {
  const { changes, faults, begin, states, isReady } = start();
  begin('app');
  changes.length = 0;
  faults.loseSandbox('uid');
  faults.loseSandbox('uid');
  expect(isReady(pod)).toBe(false);
  expect(isReady(other)).toBe(true);
  expect(states()).toEqual(['app running']);
  expect(changes).toEqual(['uid']);
});

test('a reboot ends the sandboxes and the containers of all Pods, and leaves created containers unchanged', () => {
  const { faults, create, begin, states, isReady } = start();
  begin('app');
  create('later');
  begin('app', other);
  faults.reboot();
  expect([pod, other].map(isReady)).toEqual([false, false]);
  expect(states()).toEqual(['app exited', 'later created']);
  expect(states(other)).toEqual(['app exited']);
});

test('a reboot ends the containers whose sandbox was lost before', () => {
  const { records, faults, begin } = start();
  begin('app');
  faults.loseSandbox('uid');
  faults.reboot();
  expect(records.observe('uid').containers).toMatchObject([{ state: 'exited', exitCode: 255, reason: 'Unknown' }]);
});

test('records are lost only if their container has exited and has one of the names, and without an event', () => {
  const { changes, runs, faults, begin, create, states } = start();
  for (const id of [begin('done'), begin('kept'), begin('done', other)]) faults.kill(id, 3);
  begin('running');
  create('created');
  changes.length = 0;
  faults.loseRecords('uid', ['done', 'running', 'created']);
  expect(states()).toEqual(['kept exited', 'running running', 'created created']);
  expect(states(other)).toEqual(['done exited']);
  expect(changes).toEqual([]);
  expect(runs.trace.filter(({ what }) => what === 'remove')).toMatchObject([{ podUid: 'uid', name: 'done' }]);
});

test('a container vanishes only if it runs and has one of the names', () => {
  const { changes, runs, faults, begin, create, states } = start();
  begin('app');
  begin('kept');
  faults.kill(begin('done'), 0);
  create('created');
  changes.length = 0;
  faults.vanish('uid', ['app', 'done', 'created']);
  expect(states()).toEqual(['kept running', 'done exited', 'created created']);
  expect(changes).toEqual(['uid']);
  expect(runs.trace.slice(-2)).toMatchObject([{ what: 'exit', exitCode: 137, cause: 'outside' }, { what: 'remove' }]);
});

test('a damaged record of an exited container cannot be removed until the damage ends', () => {
  const { timers, records, faults, begin, states } = start();
  const [done, running, kept] = [begin('done'), begin('running'), begin('kept')];
  faults.kill(done, 0);
  faults.kill(kept, 0);
  faults.damageRecords('uid', ['done', 'running'], 100);
  timers.advance(99);
  for (const id of [done, running, kept]) records.removeContainer(id);
  expect(states()).toEqual(['done exited']);
  timers.advance(1);
  records.removeContainer(done);
  expect(states()).toEqual([]);
});

test('kill() ends the container with the exit code, and ignores an unknown ID', () => {
  const { records, runs, faults, begin } = start();
  faults.kill(begin('app'), 9);
  faults.kill('unknown', 9);
  expect(records.observe('uid').containers).toMatchObject([{ state: 'exited', exitCode: 9 }]);
  expect(runs.trace.at(-1)).toMatchObject({ what: 'exit', cause: 'outside' });
});
