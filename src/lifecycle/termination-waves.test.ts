import { describe, expect, it } from 'vitest';
import { type Termination, terminationRecord } from '../api/core/v1/pod/status/termination.ts';
import type { Container, PodSpec } from '../api/generated/types.ts';
import { formatMicroTime } from '../machinery/time.ts';
import {
  announcedEntry,
  asked,
  at,
  container,
  decided,
  endedEntry,
  ending,
  entry,
  exited,
  type Given,
  postExit,
  running,
  sandbox,
  settled,
  stamp,
  startOf,
} from './fixtures.ts';
import type { FailedAction, NodeEnd } from './types.ts';

const exec = { command: ['true'] };
const hooked = { lifecycle: { preStop: { exec } } };
const sidecar = (name: string, more: Partial<Container> = {}) => container(name, { restartPolicy: 'Always', ...more });
const SIDECARS = [sidecar('first'), sidecar('second')];
const STOPPED = { sandboxes: [sandbox(0, { ready: false, stopped: true })] };
const all = ['first', 'second', 'app', 'debug'].map((name) => running(name));
const without = (...names: string[]) => all.filter(({ name }) => !names.includes(name));

describe('the order of waves with defer containers', () => {
  const spec: Partial<PodSpec> = {
    initContainers: SIDECARS,
    ephemeralContainers: [container('debug')],
    deferContainers: [entry('pre'), postExit('post')],
  };
  const turn = (name: string) => ({ turn: { entry: name, since: at(0) } });
  const given: Given = { spec, deleted: 30, ending: ending(30, 15, turn('pre')), now: 5 };
  const recorded = (...names: string[]): Given => ({
    status: { deferContainerStatuses: names.map((name) => endedEntry(name)) },
    ...(names.length === 0 ? {} : { ending: ending(30, 15, turn('post')) }),
  });
  it.each<[string, Given, string[]]>([
    ['nothing else stops while a PreExit entry runs', { runs: [...all, running('pre')] }, []],
    ['app containers stop after the PreExit entries', { runs: all, ...recorded('pre') }, ['stopContainer/app-0/@15']],
    [
      'neither sidecars nor ephemeral containers stop while a PostExit entry runs',
      { runs: [...without('app'), exited('app', 0, 2), running('post')], ...recorded('pre') },
      [],
    ],
    [
      'the sidecar that started last stops after the list',
      { runs: [...without('app'), exited('app', 0, 2)], ...recorded('pre', 'post') },
      ['stopContainer/second-0/@30'],
    ],
    [
      'the sidecar that started first stops next',
      { runs: [...without('app', 'second'), exited('app', 0, 2)], ...recorded('pre', 'post') },
      ['stopContainer/first-0/@30'],
    ],
    [
      'while a sidecar is being started, the sidecars before it keep running',
      {
        runs: [...without('app', 'second'), exited('app', 0, 2)],
        ...recorded('pre', 'post'),
        observed: { underWay: [startOf('second', 'init')] },
      },
      [],
    ],
    [
      'ephemeral containers stop after the sidecars',
      { runs: [...without('app', 'second', 'first'), exited('app', 0, 2)], ...recorded('pre', 'post') },
      ['stopContainer/debug-0/@30'],
    ],
    [
      'the sandbox stops last',
      { runs: [exited('app', 0, 2)], ...recorded('pre', 'post') },
      ['stopSandbox/s0', 'unmountVolumes'],
    ],
  ])('%s', (_, more, expected) => {
    expect(asked(decided({ ...given, ...more }))).toEqual(expected);
  });

  it('a run that began after its entry had ended is stopped, with the same deadline in each decision', () => {
    const stop = (now: number): string[] => {
      const signalledAt = { 'pre-0': at(5) };
      return asked(
        decided({ ...given, runs: [...all, running('pre')], ...recorded('pre'), memory: { signalledAt }, now }),
      );
    };
    expect(stop(5)).toContain('stopContainer/pre-0/@7');
    expect(stop(6)).toEqual(stop(5));
  });
  it('a running init container stops with the app containers', () => {
    const initContainers = [container('init')];
    const decision = settled({ deleted: 30, spec: { ...spec, initContainers }, runs: [running('init')] });
    expect(asked(decision)).toEqual(['stopContainer/init-0/@15']);
  });
  it('a container that is not in the spec stops with the app containers', () => {
    const runs = [running('stray'), running('first')];
    expect(asked(decided({ ...given, runs, ...recorded('pre') }))).toEqual(['stopContainer/stray-0/@15']);
  });
  it('no app container restarts in a terminating Pod', () => {
    const runs = [...without('app'), exited('app', 1, 2), running('pre')];
    expect(asked(decided({ ...given, runs }))).toEqual([]);
  });
  it('a sidecar restarts until the list has ended', () => {
    const runs = [...without('first'), exited('first', 1, 2)];
    expect(asked(decided({ ...given, runs: [...runs, running('pre')] }))).toEqual(['startContainer/first/1']);
    const after = runs.filter(({ name }) => name !== 'app');
    expect(asked(decided({ ...given, runs: after, ...recorded('pre', 'post') }))).toEqual([
      'stopContainer/second-0/@30',
    ]);
  });
  it('no sidecar restarts once the grace period has passed', () => {
    const runs = [...without('first'), exited('first', 1, 2), running('pre')];
    const alone: Given = { ...given, spec: { ...given.spec, deferContainers: [entry('pre')] }, runs };
    expect(asked(decided({ ...alone, now: 14 }))).toContain('startContainer/first/1');
    expect(asked(decided({ ...alone, now: 31 }))).not.toContain('startContainer/first/1');
  });
  it('the image of a restarting sidecar is looked up until the list has ended', () => {
    const look = { kind: 'checkImage', container: 'first', attempt: 1, image: 'i', mustExist: false } as const;
    const runs = [...without('first'), exited('first', 1, 4), running('pre')];
    const asks = (more: Given): string[] => asked(decided({ ...given, runs, observed: { underWay: [look] }, ...more }));
    expect(asks({})).not.toContain('cancel/checkImage/first/1/i');
    expect(asks(recorded('pre', 'post'))).toContain('cancel/checkImage/first/1/i');
  });
  it('the postStart hook of a sidecar that restarted during the termination runs', () => {
    const initContainers = [sidecar('first', { lifecycle: { postStart: { exec } } })];
    const restarted = running('first', { attempt: 1, id: 'first-1', createdAt: at(2), startedAt: at(2) });
    const runs = [restarted, running('app'), running('pre')];
    const hooked: Given = { ...given, spec: { ...given.spec, initContainers }, runs };
    expect(asked(decided(hooked))).toEqual(['runHook/first-1/postStart']);
    expect(asked(decided({ ...hooked, ...recorded('pre', 'post') }))).not.toContain('runHook/first-1/postStart');
  });
  it('a restarting sidecar delays no entry', () => {
    const underWay = [startOf('first', 'init', { attempt: 1, backoffSeconds: 10 })];
    const runs = [...without('first'), exited('first', 1, 2)];
    const status = { deferContainerStatuses: [announcedEntry('pre')] };
    expect(asked(decided({ ...given, runs, status, observed: { underWay } }))).toEqual(['startContainer/pre/0']);
  });
  it('a sidecar that never ran does not start during the termination', () => {
    expect(asked(decided({ ...given, runs: [running('app'), running('pre')] }))).toEqual([]);
  });
  it('the sandbox stops once the status has the end of every entry', () => {
    const runs = [exited('app', 0, 2), exited('post', 0, 4)];
    expect(asked(decided({ ...given, runs, ...recorded('pre') }))).toEqual([]);
  });
  it('app containers have 2 s between signal and kill after a late PreExit entry', () => {
    expect(asked(decided({ ...given, runs: all, ...recorded('pre'), now: 17 }))).toContain('stopContainer/app-0/@19');
  });
});

describe('preStop hooks with defer containers', () => {
  const initContainers = [sidecar('proxy', hooked)];
  const containers = [container('app', hooked)];
  const deferContainers = [entry('pre'), postExit('post')];
  const given = (more: Partial<PodSpec>): Given => ({
    deleted: 30,
    ending: ending(30, 15, { turn: { entry: 'pre', since: at(0) } }),
    now: 5,
    runs: [running('proxy'), running('app'), running('pre')],
    spec: { initContainers, containers, deferContainers, ...more },
  });
  const ended = { status: { deferContainerStatuses: [endedEntry('pre')] }, runs: [running('proxy'), running('app')] };
  it('Concurrent: every hook starts at the start of the termination', () => {
    expect(asked(decided(given({})))).toEqual(['runHook/app-0/preStop', 'runHook/proxy-0/preStop']);
  });
  it('AfterPreExit: no hook starts before the PreExit entries have ended', () => {
    expect(asked(decided(given({ preStopPolicy: 'AfterPreExit' })))).toEqual([]);
  });
  it('AfterPreExit: hooks of app containers start when the last PreExit entry has ended', () => {
    const after = { ...given({ preStopPolicy: 'AfterPreExit' }), ...ended };
    expect(asked(decided(after))).toEqual(['runHook/app-0/preStop']);
  });
  it('AfterPreExit: hooks of app containers start at the start of the termination if no PreExit entry is due', () => {
    const spec = { preStopPolicy: 'AfterPreExit', deferContainers: [entry('pre', { onReasons: ['Completed'] })] };
    const { ending: _, ...first } = given(spec);
    expect(asked(settled({ ...first, runs: ended.runs }))).toEqual(['runHook/app-0/preStop']);
  });
  it('AfterPreExit: the hook of a sidecar starts when the sidecar stops', () => {
    const deferContainerStatuses = ['pre', 'post'].map((name) => endedEntry(name));
    const after = { ...given({ preStopPolicy: 'AfterPreExit' }), status: { deferContainerStatuses } };
    expect(asked(decided({ ...after, runs: [running('proxy'), exited('app', 0, 4)] }))).toEqual([
      'runHook/proxy-0/preStop',
    ]);
  });
  it('Concurrent: the hook of a sidecar that restarted during the termination starts when the sidecar stops', () => {
    const restarted = running('proxy', { attempt: 1, createdAt: at(2), startedAt: at(2) });
    const runs = [restarted, running('app'), running('pre')];
    expect(asked(decided({ ...given({}), runs }))).toEqual(['runHook/app-0/preStop']);
    const deferContainerStatuses = ['pre', 'post'].map((name) => endedEntry(name));
    const after = { ...given({}), status: { deferContainerStatuses }, runs: [restarted, exited('app', 0, 4)] };
    expect(asked(decided(after))).toEqual(['runHook/proxy-1/preStop']);
  });
  it('an app container gets its stop signal once its own hook and the PreExit entries have ended', () => {
    const hooks = { 'app-0/preStop': {}, 'proxy-0/preStop': {} };
    expect(asked(decided({ ...given({}), observed: { hooks } }))).toEqual([]);
    expect(asked(decided({ ...given({}), ...ended, observed: { hooks } }))).toEqual(['stopContainer/app-0/@15']);
  });
  it('hooks of app containers are canceled at the end of the PreExit stage', () => {
    const underWay = [{ kind: 'runHook', container: 'app', id: 'app-0', hook: 'preStop' }] as const;
    const hooks = { 'proxy-0/preStop': {} };
    expect(asked(decided({ ...given({}), observed: { underWay, hooks }, now: 15 }))).toEqual([
      'stopContainer/pre-0/@17',
      'cancel/runHook/app-0/preStop',
    ]);
  });
});

describe('at the deadline', () => {
  const spec = {
    initContainers: SIDECARS,
    deferContainers: [postExit('post')],
    ephemeralContainers: [container('debug')],
  };
  const so = ending(30, 15, { turn: { entry: 'post', since: at(1) } });
  it('everything that still runs gets its stop signal at the deadline, and is killed 2 s later', () => {
    const runs = [...without('app'), exited('app', 0, 1), running('post')];
    const stopped = asked(decided({ spec, runs, deleted: 30, ending: so, now: 30 }));
    expect(stopped.sort()).toEqual(['debug', 'first', 'post', 'second'].map((name) => `stopContainer/${name}-0/@32`));
  });
  it('a PostExit stage that has yet to begin keeps the sidecars running', () => {
    const runs = without('debug');
    const before = ending(30, 15);
    expect(asked(decided({ spec, runs, deleted: 30, ending: before, now: 30 }))).toEqual(['stopContainer/app-0/@32']);
  });
  it('a PostExit entry that is not due keeps nothing running', () => {
    const deferContainers = [entry('pre'), postExit('post', { onReasons: ['Completed'] })];
    const late: Given = {
      spec: { ...spec, deferContainers },
      deleted: 30,
      now: 30,
      runs: [...all, running('pre')],
    };
    const stopped = asked(decided({ ...late, ending: ending(30, 30, { turn: { entry: 'pre', since: at(0) } }) }));
    expect(stopped).toContain('stopContainer/pre-0/@32');
    expect(stopped).toContain('stopContainer/app-0/@32');
    expect(stopped).toContain('stopContainer/debug-0/@32');
  });
});

describe('a Pod without defer containers', () => {
  it('app and ephemeral containers stop immediately, then the sidecars, the last started first', () => {
    const spec = { initContainers: SIDECARS, ephemeralContainers: [container('debug')] };
    const given: Given = { spec, deleted: 30, ending: ending(30), now: 3 };
    const asks = (...names: string[]) => asked(decided({ ...given, runs: without(...names) }));
    expect(asks()).toEqual(['stopContainer/app-0/@30', 'stopContainer/debug-0/@30']);
    expect(asks('app', 'debug')).toEqual(['stopContainer/second-0/@30']);
    expect(asks('app', 'debug', 'second')).toEqual(['stopContainer/first-0/@30']);
    expect(asks('app', 'debug', 'second', 'first')).toEqual(['stopSandbox/s0', 'unmountVolumes']);
  });
  it('sidecars keep running while an app container or a later sidecar is being started, until the grace period ends', () => {
    const given: Given = { spec: { initContainers: SIDECARS }, deleted: 30, ending: ending(30), now: 3 };
    const runs = [running('first')];
    for (const start of [startOf('second', 'init'), startOf('app', 'app')]) {
      const starting = { ...given, runs, observed: { underWay: [start] } };
      expect(asked(decided(starting))).toEqual([]);
      expect(asked(decided({ ...starting, now: 30 }))).toContain('stopContainer/first-0/@32');
    }
  });
  it('every preStop hook starts immediately, including those of sidecars', () => {
    const spec = { initContainers: [sidecar('first', hooked)], containers: [container('app', hooked)] };
    expect(asked(decided({ spec, deleted: 30, runs: without('second', 'debug') }))).toEqual([
      'runHook/app-0/preStop',
      'runHook/first-0/preStop',
    ]);
  });
  it('sidecars are stopped too at the end of the grace period', () => {
    const given: Given = { spec: { initContainers: SIDECARS }, deleted: 30, ending: ending(30), now: 30 };
    expect(asked(decided({ ...given, runs: without('debug') }))).toEqual([
      'stopContainer/app-0/@32',
      'stopContainer/second-0/@32',
      'stopContainer/first-0/@32',
    ]);
  });
  it('a pull, an image lookup and a mount under way are canceled', () => {
    const pull = { kind: 'pullImage', container: 'app', attempt: 0, image: 'i' } as const;
    const check = { ...pull, kind: 'checkImage', mustExist: false } as const;
    const underWay = [pull, check, { kind: 'mountVolumes' }] as const;
    expect(asked(decided({ deleted: 30, observed: { underWay, volumes: 'pending' } }))).toEqual([
      'cancel/pullImage/app/0/i',
      'cancel/checkImage/app/0/i',
      'cancel/mountVolumes',
      'stopSandbox/s0',
    ]);
  });
});

describe('the cleanup of a Pod', () => {
  const given: Given = { deleted: 30, ending: ending(30), runs: [exited('app', 0, 1)], now: 2 };
  it('nothing is removed before every sandbox has stopped', () => {
    expect(asked(decided(given))).toEqual(['stopSandbox/s0', 'unmountVolumes']);
    expect(asked(decided({ ...given, observed: STOPPED }))).toEqual(['removeSandbox/s0', 'removeFiles']);
  });
  it('no sandbox stops while a start is under way', () => {
    const underWay = [startOf('app', 'app', { attempt: 1 })];
    expect(asked(decided({ ...given, observed: { underWay } }))).toEqual([]);
    expect(
      asked(decided({ ...given, observed: { sandboxes: [], underWay: [{ kind: 'createSandbox', attempt: 0 }] } })),
    ).toEqual([]);
  });
  it('no file is removed while volumes are being mounted', () => {
    const observed = { ...STOPPED, underWay: [{ kind: 'mountVolumes' }], volumes: 'pending' } as const;
    const asks = asked(decided({ ...given, observed }));
    expect(asks).toContain('removeSandbox/s0');
    expect(asks).not.toContain('removeFiles');
  });
  it('a container without its sandbox is removed on its own', () => {
    expect(asked(decided({ ...given, observed: { sandboxes: [] } }))).toEqual(['removeContainer/app-0', 'removeFiles']);
  });
  it('the object is deleted once nothing is left on the node', () => {
    const observed = { sandboxes: [], volumes: 'gone' } as const;
    const decision = decided({ ...given, runs: [], observed });
    expect([asked(decision), decision.done]).toEqual([['finalizeDeletion'], false]);
  });
  it('decide() is done once the object has grace period 0, or was removed', () => {
    const observed = { sandboxes: [], volumes: 'gone' } as const;
    const zero = decided({ ...given, deleted: 0, runs: [], observed });
    expect([asked(zero), zero.done]).toEqual([[], true]);
    const gone = decided({ ...given, runs: [], observed, input: { removed: true } });
    expect([asked(gone), gone.done, gone.status]).toEqual([[], true, undefined]);
  });
  it('a removed object runs no list, and its containers are killed after 2 s', () => {
    const spec = { deferContainers: [entry('pre')] };
    expect(asked(decided({ spec, runs: [running('app')], input: { removed: true } }))).toEqual([
      'stopContainer/app-0/@2',
    ]);
  });
  it('the containers of an evicted Pod are removed once the status has their ends, the oldest first', () => {
    const nodeEnd: NodeEnd = { reason: 'NodePressure', message: 'low', at: at(0), graceSeconds: 0 };
    const runs = [exited('app', 1, -9), exited('app', 137, 1, { id: 'app-1', attempt: 1 })];
    const ended = { state: { terminated: { exitCode: 137, containerID: 'containerd://app-1', finishedAt: stamp(1) } } };
    const state = { name: 'app', image: 'i', imageID: 'sha', ready: false, restartCount: 1, ...ended };
    const observed = { ...STOPPED, volumes: 'unmounted' } as const;
    const pressed: Given = { runs, input: { nodeEnd }, observed };
    expect(asked(decided(pressed))).toEqual([]);
    const status = { containerStatuses: [state] };
    expect(asked(decided({ ...pressed, status }))).toEqual(['removeContainer/app-0']);
    expect(asked(decided({ ...pressed, status, runs: runs.slice(1) }))).toEqual(['removeContainer/app-1']);
    const shutDown: NodeEnd = { ...nodeEnd, reason: 'NodeShutdown' };
    expect(asked(decided({ ...pressed, status, input: { nodeEnd: shutDown } }))).toEqual([]);
    const evictedLater = { ...pressed, status, input: { nodeEnd: { ...shutDown, evicted: true } as const } };
    expect(asked(decided(evictedLater))).toEqual(['removeContainer/app-0']);
  });
});

describe('the files of the downward API', () => {
  const items = (fieldPath: string) => [{ path: 'why', fieldRef: { fieldPath } }];
  const shows = (fieldPath: string): Given => ({
    spec: {
      containers: [container('app', hooked)],
      deferContainers: [entry('pre')],
      volumes: [{ name: 'info', downwardAPI: { items: items(fieldPath) } }],
    },
    deleted: 30,
    ending: ending(30, 30, { turn: { entry: 'pre', since: at(0) } }),
    runs: [running('app')],
    status: { deferContainerStatuses: [announcedEntry('pre')] },
  });
  const given = shows('status.termination.reason');
  const write = `writeDownwardFiles/${formatMicroTime(at(0))}`;
  const BEGIN = ['startContainer/pre/0', 'runHook/app-0/preStop'];
  it('downward API files are written before the first hook or entry', () => {
    expect(asked(decided(given))).toEqual([write]);
    expect(asked(decided({ ...given, observed: { downward: formatMicroTime(at(0)) } }))).toEqual(BEGIN);
  });
  it('downward API files are awaited until a new agent has mounted them, or failed to', () => {
    const observed = { volumes: 'pending', downward: undefined } as const;
    expect(asked(decided({ ...given, observed }))).toEqual(['mountVolumes']);
    const failure = { action: { kind: 'mountVolumes' }, at: at(-0.5), count: 1, reason: 'FailedMount', message: 'no' };
    const failures = [failure as FailedAction];
    expect(asked(decided({ ...given, observed: { ...observed, failures } }))).toEqual(['runHook/app-0/preStop']);
  });
  it('downward API files delay nothing once a rewrite has failed', () => {
    const action = { kind: 'writeDownwardFiles', version: formatMicroTime(at(0)) } as const;
    const failures = [{ action, at: at(-0.5), count: 1, reason: 'Failed', message: 'no' }];
    expect(asked(decided({ ...given, observed: { failures } }))).toEqual(BEGIN);
  });
  it('downward API files delay nothing from the end of the PreExit stage on', () => {
    const so = ending(30, 10, { turn: { entry: 'pre', since: at(0) } });
    const late = { ...given, ending: so, spec: { ...given.spec, containers: [container('app')] }, now: 10 };
    expect(asked(decided({ ...late, now: 9 }))).toEqual([write]);
    expect(asked(decided(late))).toEqual([write, 'stopContainer/app-0/@12']);
    const deferContainers = [postExit('pre')];
    const inReserve = { ...late, spec: { ...late.spec, deferContainers }, runs: [exited('app', 0, 9)] };
    expect(asked(decided(inReserve))).toEqual([`${write}/0`]);
  });
  it('downward API files are written again before a PostExit entry, with the ends that its announcement recorded', () => {
    const deferContainers = [postExit('pre')];
    const ends = [
      { name: 'app', kind: 'app', exitCode: 0, restartCount: 0, reason: 'Completed', finishedAt: stamp(1) },
    ];
    const after: Given = { ...given, spec: { ...given.spec, deferContainers }, runs: [exited('app', 0, 1)] };
    const termination = { ...terminationRecord(decided(after).memory.termination as Termination), containers: ends };
    const announced = { ...after, status: { ...after.status, termination } };
    const version = formatMicroTime(at(0));
    expect(asked(decided({ ...announced, observed: { downward: version } }))).toEqual([`${write}/1`]);
    expect(asked(decided({ ...announced, observed: { downward: `${version}/0` } }))).toEqual([`${write}/1`]);
    expect(asked(decided({ ...announced, observed: { downward: `${version}/1` } }))).toEqual(['startContainer/pre/0']);
  });
  it('downward API files are not written if none shows the termination', () => {
    expect(asked(decided(shows('metadata.labels')))).toEqual(BEGIN);
  });
  it('downward API files of a projected volume count too', () => {
    const sources = [{ downwardAPI: { items: items('status.termination.containers') } }];
    const spec = { ...given.spec, volumes: [{ name: 'info', projected: { sources } }] };
    expect(asked(decided({ ...given, spec }))).toEqual([write]);
  });
});
