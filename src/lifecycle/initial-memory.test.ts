import { describe, expect, it } from 'vitest';
import type { ContainerStatus } from '../api/generated/types.ts';
import { decide } from './decide.ts';
import {
  announcedEntry,
  asked,
  at,
  container,
  decided,
  ending,
  entry,
  entryState,
  exited,
  type Given,
  inputOf,
  running,
  sandbox,
  secondsOf,
  stamp,
  written,
} from './fixtures.ts';
import { emptyMemory, rebuildMemory } from './initial-memory.ts';
import type { Decision, Input, Journal, Outage } from './types.ts';

const exec = { command: ['true'] };
const app = running('app');
const LIST = { deferContainers: [entry('clean')] };
const turn = { entry: 'clean', since: at(0) };

function recovered(input: Input, journal: Journal = { stops: {} }): Decision & { input: Input } {
  const { memory, hooks } = rebuildMemory(input, journal);
  const next: Input = {
    ...input,
    memory,
    observed: { ...input.observed, hooks: { ...input.observed.hooks, ...hooks } },
  };
  return { ...decide(next), input: next };
}
const inPod = (given: Given, journal?: Journal) => recovered({ ...inputOf(given), memory: emptyMemory() }, journal);
const shown = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  image: 'i',
  imageID: 'sha',
  ready: false,
  restartCount: 0,
  containerID: `containerd://${name}-0`,
  state: { running: { startedAt: stamp(-60) } },
  ...more,
});

describe('a new agent for a running Pod', () => {
  it('a new agent reports no Event again', () => {
    const first = decided({ runs: [app] });
    expect(first.events).not.toEqual([]);
    expect(inPod({ runs: [app], status: first.status ?? {} }).events).toEqual([]);
  });
  it('a new agent reports every step again, with the same keys', () => {
    const given: Given = { runs: [app] };
    const first = decide(inputOf(given));
    const keys = ({ transitions }: Decision) => transitions.map(({ key }) => key);
    expect(keys(inPod({ ...given, status: first.status ?? {} }))).toEqual(keys(first));
  });
  it('a new agent does not repeat a postStart hook if the status shows the container as running', () => {
    const spec = { containers: [container('app', { lifecycle: { postStart: { exec } } })] };
    expect(asked(inPod({ spec, runs: [app], status: { containerStatuses: [shown('app')] } }))).toEqual([]);
    const other = { containerStatuses: [shown('app', { containerID: 'containerd://other' })] };
    expect(asked(inPod({ spec, runs: [app], status: other }))).toEqual(['runHook/app-0/postStart']);
  });
  it('a new agent does not repeat a preStop hook that had a result, and reports its failure once', () => {
    const spec = { ...LIST, containers: [container('app', { lifecycle: { preStop: { exec } } })] };
    const given: Given = { spec, runs: [app], deleted: 30, ending: ending(30, 30, { turn }) };
    const hooks = { 'app-0/preStop': { failure: 'exit code 1' } };
    const first = decided({ ...given, observed: { hooks } });
    expect(first.events.map(({ reason }) => reason)).toContain('FailedPreStopHook');
    expect(first.journal?.preStops).toEqual(hooks);
    const next = inPod({ ...given, status: first.status ?? {} }, first.journal);
    expect(asked(next)).toEqual(['startContainer/clean/0']);
    expect(next.events.map(({ reason }) => reason)).not.toContain('FailedPreStopHook');
    const without = inPod({ ...given, status: first.status ?? {} }, { stops: {} });
    expect(asked(without)).toContain('runHook/app-0/preStop');
  });
  it('a new agent keeps a container started and ready that the status shows as such', () => {
    const spec = { containers: [container('app', { startupProbe: { exec }, readinessProbe: { exec } })] };
    const status = { containerStatuses: [shown('app', { ready: true, started: true })] };
    const decision = inPod({ spec, runs: [app], status });
    expect(decision.status?.containerStatuses?.[0]).toMatchObject({ ready: true, started: true });
    expect(asked(decision)).toEqual(['runProbe/app-0/readiness']);
  });
  it('a new agent keeps the reason for which a run is being stopped', () => {
    const stops = { 'app-0': { at: at(-5), deadline: at(20), restart: true } };
    expect(asked(inPod({ runs: [app] }, { stops }))).toEqual(['stopContainer/app-0/@20']);
    const ended = inPod({ spec: { restartPolicy: 'OnFailure' }, runs: [exited('app', 0, 0)] }, { stops });
    expect(asked(ended)).toEqual(['startContainer/app/1']);
  });
  const INIT = { initContainers: [container('init')] };
  const conditions = [{ type: 'Initialized', status: 'True' }];
  it('a new agent does not repeat init containers whose runs the runtime has lost, in the same sandbox', () => {
    const status = { conditions, podIP: '10.0.0.2' };
    expect(asked(inPod({ spec: INIT, status }))).toEqual(['startContainer/app/0']);
  });
  it('a new agent repeats init containers in another sandbox', () => {
    const status = { conditions, podIP: '10.0.0.1' };
    expect(asked(inPod({ spec: INIT, status }))).toEqual(['startContainer/init/0']);
  });
});

describe('a new agent for a terminating Pod', () => {
  const outages: Outage[] = [{ from: at(3), to: at(50) }];
  const given: Given = { deleted: 30, ending: ending(30, 30, { turn }), runs: [app, running('clean')], now: 50 };
  const endsAt = ({ memory: { termination } }: Decision): number => secondsOf(termination?.deadline ?? 0);

  it('a new agent continues the termination in the status, without the time of the outage', () => {
    const decision = inPod({ ...given, spec: LIST, observed: { outages } });
    expect([asked(decision), endsAt(decision)]).toEqual([[], 77]);
  });
  it('a new agent continues the termination in the journal of a Pod without defer containers', () => {
    const journal = { stops: {}, termination: ending(30, 30, { deletionGracePeriodSeconds: 30 }) };
    const decision = inPod({ deleted: 30, runs: [app], now: 50, observed: { outages } }, journal);
    expect([asked(decision), endsAt(decision)]).toEqual([['stopContainer/app-0/@77'], 77]);
  });
  it('a new agent counts no outage twice, whether or not its status was written', () => {
    const first = inPod({ ...given, spec: LIST, observed: { outages } });
    const { journal, input } = first;
    const again = { ...input, now: at(60), observed: { ...input.observed, outages: [{ from: at(50), to: at(60) }] } };
    expect(endsAt(recovered(written(again, first), journal))).toBe(77);
    const counted = { ...again, observed: { ...again.observed, outages: [{ from: at(45), to: at(60) }] } };
    expect(endsAt(recovered(counted, journal))).toBe(87);
    const input2 = written(input, first);
    const next = { ...input2, now: at(60), observed: { ...input2.observed, outages: [{ from: at(45), to: at(60) }] } };
    expect(endsAt(recovered(next))).toBe(87);
  });
  it('a new agent requests nothing until the status has a later deadline that only the journal has', () => {
    const journal = {
      stops: {},
      termination: ending(40, 40, { turn, extendedSeconds: 10, deletionGracePeriodSeconds: 30 }),
    };
    const decision = inPod({ ...given, spec: LIST, now: 30 }, journal);
    expect([asked(decision), endsAt(decision)]).toEqual([[], 40]);
    expect(decision.status?.termination?.extendedSeconds).toBe(10);
  });
  it.each<[string, Given]>([
    ['run failed', { runs: [exited('app', 0, 1), exited('clean', 1, 2)] }],
    ['run was lost', { runs: [exited('app', 0, 1)] }],
    ['image could not be pulled', { runs: [exited('app', 0, 1)], observed: { images: {} } }],
  ])(
    'a new agent takes the end of an entry whose %s from the journal, which gave the turn to the next entry',
    (_, more) => {
      const clean = entry('clean', { restartPolicy: 'OnFailure' });
      const spec = { deferContainers: [clean, entry('after', { trigger: 'PostExit' })] };
      const status = { deferContainerStatuses: [shown('clean')] };
      const termination = ending(60, 60, { turn: { entry: 'after', since: at(2) }, deletionGracePeriodSeconds: 30 });
      const ended = { clean: { at: at(2), reason: 'Error', exitCode: 128, message: 'ErrImagePull: no such image' } };
      const decision = inPod({ ...given, ...more, spec, status }, { stops: {}, termination, ended });
      expect(decision.memory.termination?.turn?.entry).toBe('after');
      expect(entryState(decision, 'clean')?.terminated).toMatchObject({
        reason: 'Error',
        message: ended.clean.message,
      });
    },
  );
  it('a new agent keeps the end of an entry in the journal until the status has it', () => {
    const termination = ending(60, 60, { turn: { entry: 'clean', since: at(1) }, deletionGracePeriodSeconds: 30 });
    const spec = { deferContainers: [entry('clean')] };
    const runs = [running('app'), exited('clean', 1, 2)];
    const status = { deferContainerStatuses: [shown('clean')] };
    const first = inPod({ ...given, spec, runs, status }, { stops: {}, termination });
    expect(first.journal?.ended).toMatchObject({ clean: { reason: 'Error', exitCode: 1 } });
    const next = decide(written(first.input, first));
    expect([next.memory.ended, next.journal]).toEqual([{}, undefined]);
  });
  it('a new agent counts a deletion that was made while no agent ran from now', () => {
    expect(endsAt(inPod({ deleted: 30, runs: [app], now: 50, observed: { outages } }))).toBe(80);
  });
  it('a new agent repeats a preStop hook without a result', () => {
    const spec = { containers: [container('app', { lifecycle: { preStop: { exec } } })] };
    const journal = { stops: {}, termination: ending(30, 30, { deletionGracePeriodSeconds: 30 }) };
    expect(asked(inPod({ spec, deleted: 30, runs: [app], now: 5 }, journal))).toEqual(['runHook/app-0/preStop']);
  });
});

describe('a new agent and the attempts of an entry', () => {
  const inTurn = (given: Given): Decision =>
    inPod({
      deleted: 30,
      ending: ending(30, 30, { turn }),
      now: 10,
      spec: LIST,
      ...given,
      runs: [app, ...(given.runs ?? [])],
    });
  const announced = { deferContainerStatuses: [announcedEntry('clean')] };
  const endOf = (decision: Decision): string | undefined => entryState(decision, 'clean')?.terminated?.reason;

  it('a new agent starts an announced attempt under the same number', () => {
    expect(asked(inTurn({ status: announced }))).toEqual(['startContainer/clean/0']);
  });
  it('a running entry continues under a new agent', () => {
    expect(asked(inTurn({ status: announced, runs: [running('clean')] }))).toEqual([]);
  });
  it('an entry that succeeded while no agent ran does not run again', () => {
    expect(endOf(inTurn({ status: announced, runs: [exited('clean', 0, 9)] }))).toBe('Completed');
  });
  it('a failed attempt that was only announced is retried once', () => {
    const decision = inTurn({ status: announced, runs: [exited('clean', 137, 9)] });
    expect(endOf(decision)).toBeUndefined();
    expect(decision.status?.deferContainerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      state: { waiting: { reason: 'ContainerCreating' } },
    });
  });
  it('an attempt with an exit code of its own has failed, even if it was only announced', () => {
    const decision = inTurn({ status: announced, runs: [exited('clean', 3, 9)] });
    expect(entryState(decision, 'clean')?.terminated).toMatchObject({ reason: 'Error', exitCode: 3 });
  });
  it('an attempt that the previous agent announced again is retried, even if its end is shown as the last one', () => {
    const { containerID, lastState } = { containerID: 'containerd://clean-0', lastState: 137 };
    const terminated = { exitCode: lastState, reason: 'Error', containerID, finishedAt: stamp(9) };
    const again = { ...announcedEntry('clean', 1), lastState: { terminated } };
    const decision = inTurn({ status: { deferContainerStatuses: [again] }, runs: [exited('clean', 137, 9)] });
    expect(endOf(decision)).toBeUndefined();
    expect(asked(decision)).toEqual(['startContainer/clean/1']);
  });
  it('a failed attempt that the status named, but did not show as running, is retried', () => {
    const named = { ...announcedEntry('clean'), containerID: 'containerd://clean-0' };
    const decision = inTurn({ status: { deferContainerStatuses: [named] }, runs: [exited('clean', 137, 9)] });
    expect(endOf(decision)).toBeUndefined();
  });
  it('a failed attempt that the status showed as running is not retried', () => {
    const status = { deferContainerStatuses: [shown('clean')] };
    expect(endOf(inTurn({ status, runs: [exited('clean', 137, 9)] }))).toBe('Error');
  });
  it('an entry that failed while no agent ran is reported as an Event', () => {
    const status = { deferContainerStatuses: [shown('clean')] };
    const { events } = inTurn({ status, runs: [exited('clean', 3, 9)] });
    expect(events.map(({ reason }) => reason)).toContain('DeferContainerFailed');
  });
  it('a container that was created but not started is started', () => {
    expect(asked(inTurn({ status: announced, runs: [running('clean', { state: 'created' })] }))).toEqual([
      'startContainer/clean/0',
    ]);
  });
  it('a container whose start was abandoned by the previous agent is retried once', () => {
    const { startedAt: _, ...created } = running('clean', { state: 'created' });
    const { input, memory } = inPod({
      deleted: 30,
      ending: ending(30, 30, { turn }),
      now: 10,
      spec: LIST,
      status: announced,
      runs: [app, created],
    });
    const ended = { ...created, kind: 'defer', state: 'exited', exitCode: 128, finishedAt: at(11) } as const;
    const observed = { ...input.observed, containers: [{ ...app, kind: 'app' } as const, ended] };
    const decision = decide({ ...input, memory, observed, now: at(11) });
    expect(entryState(decision, 'clean')?.waiting?.reason).toBe('ContainerCreating');
    expect(decision.status?.deferContainerStatuses?.[0]?.restartCount).toBe(1);
  });
});

it('a new agent replaces a lost sandbox', () => {
  const { status } = decided({ runs: [app] });
  const lost = { sandboxes: [sandbox(0, { ready: false, stopped: true })] };
  const runs = [exited('app', 137, -1)];
  expect(asked(inPod({ runs, status: status ?? {}, observed: lost }))).toEqual(['createSandbox/1']);
});
