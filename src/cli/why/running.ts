/** Explains why a running Pod is not ready, or that it is healthy. Pure. */
import type { Container, ContainerStateTerminated, LifecycleHandler, Pod, Probe } from '../../api/generated/types.ts';
import { parseTime } from '../../machinery/time.ts';
import { programLossIn } from '../../platform/programs/program-part.ts';
import { missingPort } from './needs/port-names.ts';
import { codeText, endOfRun, restartText } from './run-end.ts';
import { failureClause, failureEvent, failureText } from './stops/probe-failure.ts';
import {
  type Action,
  ago,
  called,
  conditionLine,
  conditionOf,
  type Explanation,
  eventLine,
  forTime,
  inTime,
  type Living,
  lastStep,
  listed,
  oneLine,
  runningHook,
  type Shown,
  seeOutput,
  seeTimeline,
  shownContainers,
} from './subject.ts';

export function explainReadiness(subject: Living): Explanation | undefined {
  const { name } = subject;
  const ready = conditionOf(subject, 'Ready');
  if (ready?.status === 'True') return undefined;
  const wanted = shownContainers(subject).filter(({ kind }) => kind === 'app' || kind === 'init');
  const unready = wanted.find(({ status }) => !status.ready && status.state?.running !== undefined);
  if (unready !== undefined) return explainUnready(subject, unready);
  const gates = explainReadinessGates(subject);
  if (gates !== undefined) return gates;
  for (const shown of wanted) {
    const { terminated } = shown.status.state ?? {};
    if (shown.kind === 'app' && terminated !== undefined) return endedContainer(subject, shown, terminated);
  }
  const waiting = wanted.filter(({ status }) => !status.ready && status.state?.waiting !== undefined);
  for (const shown of waiting) {
    const hook = startHookCause(subject, shown);
    if (hook !== undefined) return explanationOf(`${name} is starting`, hook);
  }
  const [starting] = waiting;
  return {
    sentence:
      starting === undefined
        ? `${name} is starting: it has just been assigned to its node.`
        : `${name} is starting: ${called(starting)} is about to run.`,
    evidence: conditionLine(ready),
    actions: [{ description: 'wait a moment' }, seeTimeline(subject, '-w')],
  };
}

/** Explains a Pod that is not ready only because of its readiness gates; undefined for other Pods. */
export function explainReadinessGates(subject: Living): Explanation | undefined {
  const { name, pod } = subject;
  const ready = conditionOf(subject, 'Ready');
  if (ready?.reason !== 'ReadinessGatesNotReady') return undefined;
  return {
    sentence: `${name} is not ready: its readiness gates are not met, ${oneLine(ready.message).replace(/\.$/, '')}.`,
    evidence: [...conditionLine(ready), ...conditionLine(conditionOf(subject, 'ContainersReady'))],
    actions: [
      {
        description: `the controllers that own the conditions ${listed((pod.spec?.readinessGates ?? []).map((gate) => gate.conditionType))} set them in the Pod's status`,
      },
    ],
  };
}

const specOf = ({ spec }: Pod, name: string): Container | undefined =>
  [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].find((each) => each.name === name);

/** Returns the kind of the probe that a running container without readiness waits for, and the probe if there is one. */
export function readyingProbe(
  pod: Pod,
  { name, status }: Shown,
): { kind: 'startup' | 'readiness'; probe: Probe | undefined } {
  const own = specOf(pod, name);
  return status.started !== true && own?.startupProbe !== undefined
    ? { kind: 'startup', probe: own.startupProbe }
    : { kind: 'readiness', probe: own?.readinessProbe };
}

/** Why a container is not ready, or does not count as started. `cause`: a clause. */
interface Cause {
  cause: string;
  evidence: string[];
  actions: Action[];
}

/** Explains why a container that runs is not ready. */
export const explainUnready = (subject: Living, shown: Shown): Explanation =>
  explanationOf(`${subject.name} is not ready`, probeCause(subject, shown));

const explanationOf = (state: string, { cause, evidence, actions }: Cause): Explanation => ({
  sentence: `${state}: ${cause}.`,
  evidence,
  actions,
});

/** Returns the postStart hook or the startup probe for which an init container does not count as started; undefined if it has none. */
export const unstartedCause = (subject: Living, shown: Shown): Cause | undefined =>
  startHookCause(subject, shown) ??
  (shown.status.state?.running !== undefined && readyingProbe(subject.pod, shown).kind === 'startup'
    ? probeCause(subject, shown)
    : undefined);

/** Returns the postStart hook that runs in a container, whose status is `waiting` until the hook has ended; undefined if none runs. */
function startHookCause(subject: Living, shown: Shown): Cause | undefined {
  const { now, pod } = subject;
  const began = runningHook(subject, shown.name, 'postStart');
  const hook = specOf(pod, shown.name)?.lifecycle?.postStart;
  if (began === undefined || hook === undefined) return undefined;
  return {
    cause: `the postStart hook of ${called(shown)} has been running for ${forTime(began.at, now)}, and the container counts as started only when the hook has ended`,
    evidence: [`the hook: ${handlerText(hook)}`, `step HookBegan (postStart), ${ago(began.at, now)}`],
    actions: [
      { description: 'wait, or find out why its postStart hook takes so long; to change the hook, recreate the Pod' },
      seeOutput(subject, shown.name),
    ],
  };
}

const NAME_PORT: Action = {
  description: 'name a port of the container in the probe, or give its port this name, and recreate the Pod',
};

function probeCause(subject: Living, shown: Shown): Cause {
  const { now, pod } = subject;
  const { kind, probe } = readyingProbe(pod, shown);
  const since = parseTime(shown.status.state?.running?.startedAt);
  const turned = subject.transitions.findLast(
    (step) => /^Probe(Failing|Passing)$/.test(step.type) && step.container === shown.name && step.reason === kind,
  );
  const failing = turned?.type === 'ProbeFailing' && turned.at >= (since ?? 0) ? turned : undefined;
  const event = failureEvent(subject, kind, shown.name, { since });
  const text = event === undefined ? failing?.message && oneLine(failing.message) : failureText(event);
  const loss = programLossIn(text || '');
  if (loss !== undefined)
    return {
      cause: `the ${kind} probe of ${called(shown)} cannot run, because ${loss}`,
      evidence: eventLine(event, subject),
      actions: [{ description: 'restart the engine as the first sentence says; the node then runs the probe again' }],
    };
  const lack = missingPort(pod, shown, kind);
  if (lack !== undefined)
    return {
      cause: `the ${kind} probe of ${called(shown)} cannot run, because ${lack}`,
      evidence: eventLine(event, subject),
      actions: [NAME_PORT],
    };
  const isFailing = event !== undefined || failing !== undefined;
  const delay = probe?.initialDelaySeconds ?? 0;
  const first = (since ?? 0) + delay * 1000;
  const isDelayed = !isFailing && first > now;
  const pending = isDelayed
    ? `begins only ${inTime(first, now)}, because of its initialDelaySeconds of ${delay}`
    : 'has not succeeded yet';
  return {
    cause: isFailing ? failureClause(kind, shown, 'fails', text) : `the ${kind} probe of ${called(shown)} ${pending}`,
    evidence: [
      ...(probe === undefined ? [] : [`the probe: ${probeText(probe)}`]),
      ...eventLine(event, subject),
      ...(failing === undefined ? [] : [`it has been failing for ${forTime(failing.at, now)}`]),
    ],
    actions: [
      ...(isFailing ? [{ description: `fix what its ${kind} probe checks, or correct the probe` }] : []),
      ...(isDelayed ? [{ description: 'wait, or recreate the Pod with smaller initialDelaySeconds' }] : []),
      seeOutput(subject, shown.name),
    ],
  };
}

function endedContainer(subject: Living, shown: Shown, ended: ContainerStateTerminated): Explanation {
  const { name, now } = subject;
  const next = lastStep(subject, ['BackOff'], shown.name)?.deadline;
  const soon = restartText(subject, next !== undefined && next > now ? next : undefined);
  const { cause, evidence, actions } = endOfRun(subject, shown, ended, false);
  return {
    sentence: `${name} is not ready: ${cause}${soon}.`,
    evidence: [`it ended with ${codeText(ended)}`, `restartPolicy is ${subject.pod.spec?.restartPolicy}`, ...evidence],
    actions,
  };
}

function probeText(probe: Probe): string {
  const { initialDelaySeconds = 0, periodSeconds = 10, failureThreshold = 3, timeoutSeconds = 1 } = probe;
  const delay = initialDelaySeconds > 0 ? `${initialDelaySeconds} s after the start of the container, then ` : '';
  return `${handlerText(probe)}, ${delay}every ${periodSeconds} s within ${timeoutSeconds} s, failing after ${failureThreshold} in a row`;
}

function handlerText({ exec, httpGet, tcpSocket, grpc, sleep }: Probe & LifecycleHandler): string {
  if (exec !== undefined) return `exec ${(exec.command ?? []).join(' ')}`;
  if (httpGet !== undefined) return `GET ${httpGet.path ?? '/'} on port ${httpGet.port}`;
  if (tcpSocket !== undefined) return `TCP to port ${tcpSocket.port}`;
  return sleep === undefined ? `gRPC on port ${grpc?.port}` : `sleep for ${sleep.seconds} s`;
}

/**
 * A Pod counts as running again if a container was restarted within this time. Source: the kubelet resets a container's back-off after a
 * run of ten minutes.
 */
const RECENT_MILLIS = 10 * 60 * 1000;

export function explainRunning(subject: Living): Explanation {
  const { name, now } = subject;
  const ready = conditionOf(subject, 'Ready');
  const since = parseTime(ready?.lastTransitionTime);
  const shown = shownContainers(subject).filter(({ status }) => status.state?.running !== undefined);
  const count = shown.length === 1 ? 'its container is' : `all ${shown.length} containers are`;
  const restarted = shown
    .flatMap((each) => {
      const { status } = each;
      const last = status.lastState?.terminated;
      // The previous run ended earlier, before the back-off, so the start of the current run counts.
      const at = parseTime(status.state?.running?.startedAt);
      return last === undefined || at === undefined || now - at > RECENT_MILLIS ? [] : [{ ...each, last, at }];
    })
    .sort((a, b) => b.at - a.at)[0];
  if (restarted !== undefined) {
    const { last, at, status } = restarted;
    const { cause, evidence, actions } = endOfRun(subject, restarted, last, true);
    return {
      sentence: `${name} is running again: ${cause}${cause.startsWith(called(restarted)) ? ', and' : '; the container'} was restarted ${ago(at, now)}.`,
      evidence: [`it was restarted ${status.restartCount}×, the last time after ${codeText(last)}`, ...evidence],
      actions,
    };
  }
  // The failures of a liveness probe that cannot run have no effect.
  const unchecked = shown.flatMap((each) => missingPort(subject.pod, each, 'liveness') ?? []);
  return {
    sentence: `${name} is running: ${count} ready${since === undefined ? '' : `, for ${forTime(since, now)}`}.`,
    evidence: [
      ...shown.map((each) => {
        const { status } = each;
        const last = status.lastState?.terminated;
        const restarts =
          status.restartCount === 0
            ? 'never restarted'
            : `restarted ${status.restartCount}×${last === undefined ? '' : `, last after code ${last.exitCode} (${last.reason})`}`;
        return `${called(each)}: ${restarts}`;
      }),
      ...unchecked.map((lack) => `its liveness probe never runs, because ${lack}`),
    ],
    actions: unchecked.length === 0 ? [] : [NAME_PORT],
  };
}
