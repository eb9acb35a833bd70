/**
 * The worker of one Pod observes, decides and acts in a loop.
 *
 * Boundary: decide() contains all rules.
 * Invariants:
 * - The last status is written before the object is deleted. A run is removed only after its end is recorded, or cannot be recorded.
 * - After a call that the runtime did not answer, nothing is decided until an observation succeeds. The time until then is an outage.
 *   Probes and hooks are exceptions, since their container may have exited.
 */
import type { Pod } from '../../../api/generated/types.ts';
import { decide } from '../../../lifecycle/decide.ts';
import { rebuildMemory } from '../../../lifecycle/initial-memory.ts';
import { nodeEndAfter } from '../../../lifecycle/termination-causes.ts';
import type { Decision, Input, Memory } from '../../../lifecycle/types.ts';
import { OutcomeUnknownError } from '../../../runtime/runtime.ts';
import { createStatusWriter, type StatusWriter } from '../status-writer.ts';
import { createWorkerActions, type WorkerActions } from './actions.ts';
import { FORGETS, LAST_STEPS } from './effects.ts';
import { mountsImage } from './images.ts';
import { createWorkerLoop } from './loop.ts';
import type { PodWorker, WorkerPorts } from './ports.ts';
import { createWorkerFlights, type WorkerFlights } from './running-actions.ts';
import { initialState, inputOf, observed, type WorkerStart, type WorkerState } from './state.ts';

export type { PodWorker } from './ports.ts';

export function startWorker(start: WorkerStart, ports: WorkerPorts): PodWorker {
  const life = new AbortController();
  const { signal } = life;
  const state = initialState(start);
  const flights = createWorkerFlights(state, ports);
  const statuses = createStatusWriter(ports, signal);
  const nextDecision = createDecisions(start, state, () =>
    inputOf(state, { node: ports.node, underWay: flights.underWay(), now: ports.timers.now() }),
  );

  const decideAndAct = (): void => {
    if (state.outages.isUnknown()) return;
    const decision = nextDecision();
    loop.wakeAt(decision.wakeAt);
    carryOut(decision, state.pod, ports, actions, statuses);
    if (!decision.done) return;
    end();
    ports.done();
  };

  const loop = createWorkerLoop({
    timers: ports.timers,
    log: ports.log,
    signal,
    pod: () => state.pod,
    mustObserve: mustObserveFirst(start),
    isObservationDue: flights.isObservationDue,
    observe: () => observe(state, ports, flights, signal),
    decide: decideAndAct,
  });
  const actions = createWorkerActions(state, { ports, flights, statuses, loop, signal });

  const end = (): void => {
    loop.wakeAt(undefined);
    life.abort();
    flights.abortAll();
  };

  loop.wake();
  return {
    update(pod, removed) {
      state.pod = pod;
      state.removed ||= removed;
      actions.objectChanged();
      loop.wake();
    },
    end(by) {
      state.nodeEnd = nodeEndAfter(state.nodeEnd, by, ports.timers.now());
      loop.wake();
    },
    changed() {
      loop.mustObserve();
      loop.wake();
    },
    retry(key) {
      state.failures.retry(key, flights.isUnderWay(key));
      loop.wake();
    },
    imageAppeared(name) {
      if (state.images.appeared(name, state.failures.observed(), flights.underWay())) loop.wake();
      if (mountsImage(state.pod, name)) this.retry('mountVolumes');
    },
    pod: () => state.pod,
    flushed: statuses.flushed,
    stop() {
      void statuses.flushed(); // Starts the write of a status that waits, before the signal prevents it.
      end();
    },
  };
}

function createDecisions(
  { journal = { stops: {} } }: WorkerStart,
  { results, outages }: WorkerState,
  input: () => Omit<Input, 'memory'>,
): () => Decision {
  let memory: Memory | undefined;
  return () => {
    if (memory === undefined) {
      const recovered = rebuildMemory(input(), journal);
      results.recovered(recovered.hooks);
      memory = recovered.memory;
    }
    const decision = decide({ ...input(), memory });
    memory = decision.memory;
    outages.counted();
    return decision;
  };
}

/**
 * Whether the first decision needs an observation. A Pod without a start time needs none: either the runtime has nothing of the Pod, or an
 * agent died before it wrote the status. Repeating that agent's calls is safe, since they are idempotent by name.
 */
const mustObserveFirst = ({ pod, removed, nodeEnd }: WorkerStart): boolean =>
  removed || [nodeEnd, pod.status?.startTime, pod.metadata.deletionTimestamp].some((trace) => trace !== undefined);

async function observe(
  state: WorkerState,
  ports: WorkerPorts,
  flights: WorkerFlights,
  signal: AbortSignal,
): Promise<void> {
  const observation = flights.observing();
  const began = ports.timers.now();
  const answered = state.outages.observing();
  try {
    observed(state, await ports.observe(state.pod, signal));
  } catch (error) {
    observation.failed();
    if (error instanceof OutcomeUnknownError) state.outages.unanswered(began);
    throw error;
  }
  observation.succeeded();
  answered(ports.timers.now());
}

/** Actions that destroy evidence wait until the evidence is recorded, or cannot be recorded. */
function carryOut(
  { journal, events, transitions, actions, status }: Decision,
  pod: Pod,
  ports: WorkerPorts,
  { perform }: WorkerActions,
  statuses: StatusWriter,
): void {
  if (journal !== undefined) ports.keep(pod, journal);
  for (const event of events) ports.event(pod, event);
  const forgets = actions.some(({ kind }) => FORGETS.has(kind));
  let recorded = forgets ? ports.recorded() : undefined;
  if (transitions.length > 0) ports.record(pod, transitions);
  if (forgets && transitions.some(({ type }) => !LAST_STEPS.has(type))) recorded = ports.recorded();
  for (const action of actions) perform(action, recorded);
  if (status !== undefined) statuses.write(pod, status);
  // Write the status now, because a later worker could not derive it from evidence that no longer exists.
  if (forgets) void statuses.flushed();
}
