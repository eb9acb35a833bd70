/** Explains why a running Pod is not ready or that it is healthy, and how a Succeeded or Failed Pod ended. Pure. */
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Container, Probe } from '../../api/generated/types.ts';
import { parseTime } from '../../machinery/time.ts';
import { deferOutcome, type EntryEnd, endOfEntry, endText } from './entries.ts';
import {
  ago,
  called,
  conditionLine,
  conditionOf,
  type Explanation,
  eventLine,
  eventOf,
  forTime,
  inTime,
  type Living,
  lastStep,
  lastWords,
  listed,
  oneLine,
  type Shown,
  shownContainers,
  sidecarsOf,
  stopReason,
} from './subject.ts';

const timeline = ({ name, namespace }: Living): string => `lifepod timeline ${name} -n ${namespace} shows its life`;

/** Explains how a Succeeded or Failed Pod ended. Sidecars do not decide how a Pod ends, so they are only listed as evidence. */
export function explainOutcome(subject: Living): Explanation | undefined {
  const { pod, name, namespace } = subject;
  const { phase, reason, message } = pod.status ?? {};
  if (!isFinalPhase(phase)) return undefined;
  const ends = shownContainers(subject).flatMap((shown) => {
    const { terminated } = shown.status.state ?? {};
    return terminated === undefined ? [] : [{ ...shown, terminated }];
  });
  const entries = ends.flatMap(({ kind, status }) =>
    kind === 'defer' ? (endOfEntry(status, subject.transitions) ?? []) : [],
  );
  const evidence = ends.map(({ terminated, ...shown }) => {
    const entry = shown.kind === 'defer' ? entries.find((each) => each.name === shown.name) : undefined;
    const end = entry === undefined ? `exit code ${terminated.exitCode} (${terminated.reason})` : endText(entry);
    return `${called(shown)}: ${end}`;
  });
  const defers = deferOutcome(entries);
  if (phase === 'Succeeded')
    return {
      sentence: `${name} has completed: all its app containers ended with code 0${defers}.`,
      evidence,
      advice: `there is nothing to do; its object stays until it is deleted: kubectl delete pod ${name} -n ${namespace}`,
    };
  const sidecars = sidecarsOf(pod);
  const bad = ends.find(
    ({ kind, name: own, terminated }) =>
      (kind === 'init' || kind === 'app') && !sidecars.has(own) && terminated.exitCode !== 0,
  );
  const badEnd =
    bad === undefined
      ? undefined
      : `${called(bad)} ended with code ${bad.terminated.exitCode}${bad.terminated.reason === 'OOMKilled' ? ', killed for its memory limit' : ''}`;
  if (reason === 'DeferContainerFailed') return failedByEntry(subject, entries, evidence, badEnd);
  const why = reason
    ? `${reason}${message ? `, ${oneLine(message)}` : ''}`
    : (badEnd ?? 'its containers did not succeed');
  return {
    sentence: `${name} has failed: ${why}${defers}.`,
    evidence: [...evidence, ...(bad === undefined ? [] : lastWords(subject, bad.name, bad.terminated.message))],
    advice:
      bad === undefined ? timeline(subject) : `see its output: lifepod logs ${name} -n ${namespace} -c ${bad.name}`,
  };
}

/**
 * Explains a Pod that failed because of a defer container with failurePolicy FailPod. `badEnd` says how an init or app container failed;
 * undefined if none failed.
 */
function failedByEntry(subject: Living, entries: readonly EntryEnd[], evidence: string[], badEnd = ''): Explanation {
  const { name, namespace, pod } = subject;
  const policies = new Map(pod.spec?.deferContainers?.map((entry) => [entry.name, entry.failurePolicy]));
  const deciding = entries.filter((end) => policies.get(end.name) === 'FailPod' && deferOutcome([end]) !== '');
  const names = deciding.map((end) => end.name);
  const [first] = deciding;
  return {
    sentence: `${name} has failed: DeferContainerFailed${deferOutcome(entries)}${names.length === 0 ? '' : `; the failurePolicy of ${listed(names)} is FailPod`}${badEnd && `; ${badEnd}`}.`,
    evidence: [...evidence, ...(first === undefined ? [] : lastWords(subject, first.name, first.message))],
    advice:
      first?.ran === true ? `see its output: lifepod logs ${name} -n ${namespace} -c ${first.name}` : timeline(subject),
  };
}

export function explainReadiness(subject: Living): Explanation | undefined {
  const { name, pod } = subject;
  const ready = conditionOf(subject, 'Ready');
  if (ready?.status === 'True') return undefined;
  const wanted = shownContainers(subject).filter(({ kind }) => kind === 'app' || kind === 'init');
  const unready = wanted.find(({ status }) => !status.ready && status.state?.running !== undefined);
  if (unready !== undefined) return unreadyContainer(subject, unready);
  if (ready?.reason === 'ReadinessGatesNotReady')
    return {
      sentence: `${name} is not ready: its readiness gates are not met, ${oneLine(ready.message)}.`,
      evidence: [...conditionLine(ready), ...conditionLine(conditionOf(subject, 'ContainersReady'))],
      advice: `the controllers that own the conditions ${listed((pod.spec?.readinessGates ?? []).map((gate) => gate.conditionType))} set them in the Pod's status`,
    };
  const ended = wanted.find(({ kind, status }) => kind === 'app' && status.state?.terminated !== undefined);
  if (ended !== undefined) return endedContainer(subject, ended);
  const starting = wanted.find(({ status }) => !status.ready && status.state?.waiting !== undefined);
  return {
    sentence:
      starting === undefined
        ? `${name} is starting: it has just been assigned to its node.`
        : `${name} is starting: ${called(starting)} is about to run.`,
    evidence: conditionLine(ready),
    advice: `wait a moment, or watch it: lifepod timeline ${name} -n ${subject.namespace} -w`,
  };
}

function unreadyContainer(subject: Living, shown: Shown): Explanation {
  const { name, now, pod, namespace } = subject;
  const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  const spec = all.find((each) => each.name === shown.name);
  const logs = `see its output: lifepod logs ${name} -n ${namespace} -c ${shown.name}`;
  const hook = lastStep(subject, ['HookBegan', 'HookDone', 'HookFailed'], shown.name);
  if (hook?.type === 'HookBegan' && hook.reason === 'postStart')
    return {
      sentence: `${name} is not ready: the postStart hook of ${called(shown)} has been running for ${forTime(hook.at, now)}.`,
      evidence: [`step HookBegan (postStart), ${ago(hook.at, now)}`],
      advice: `wait for it, or make the hook shorter: the container counts as running once it has ended`,
    };
  const starts = shown.status.started !== true && spec?.startupProbe !== undefined;
  const kind = starts ? 'startup' : 'readiness';
  const probe = starts ? spec?.startupProbe : (spec as Container | undefined)?.readinessProbe;
  const failed = subject.events
    .filter(({ message }) => new RegExp(`^${kind} probe`, 'i').test(message ?? ''))
    .map((event) => eventOf({ ...subject, events: [event] }, ['Unhealthy', 'ProbeWarning'], shown.name))
    .filter((event) => event !== undefined);
  const turned = lastStep(subject, ['ProbeFailing'], shown.name);
  const event = failed.at(-1);
  const last = oneLine(
    event?.message?.replace(/^\w+ probe \w+:/, '') ?? (turned?.reason === kind ? turned.message : ''),
  );
  const said = last === '' ? 'has not succeeded yet' : `fails, ${last}`;
  return {
    sentence: `${name} is not ready: the ${kind} probe of ${called(shown)} ${said}.`,
    evidence: [
      ...(probe === undefined ? [] : [`the probe: ${probeText(probe)}`]),
      ...eventLine(event, subject),
      ...(turned?.reason === kind ? [`it has been failing for ${forTime(turned.at, now)}`] : []),
    ],
    advice: logs,
  };
}

/** Explains a container that has ended and restarts soon, or that is not restarted while other containers still run. */
function endedContainer(subject: Living, shown: Shown): Explanation {
  const { name, now, namespace } = subject;
  const { terminated } = shown.status.state ?? {};
  const next = lastStep(subject, ['BackOff'], shown.name)?.deadline;
  const soon = next !== undefined && next > now ? `; it restarts ${inTime(next, now)}` : '';
  return {
    sentence: `${name} is not ready: ${called(shown)} ended with code ${terminated?.exitCode} (${terminated?.reason})${soon}.`,
    evidence: [
      `restartPolicy is ${subject.pod.spec?.restartPolicy}`,
      ...lastWords(subject, shown.name, terminated?.message),
    ],
    advice: `see its output: lifepod logs ${name} -n ${namespace} -c ${shown.name}`,
  };
}

function probeText({
  exec,
  httpGet,
  tcpSocket,
  grpc,
  periodSeconds = 10,
  failureThreshold = 3,
  timeoutSeconds = 1,
}: Probe): string {
  const what =
    exec !== undefined
      ? `exec ${(exec.command ?? []).join(' ')}`
      : httpGet !== undefined
        ? `GET ${httpGet.path ?? '/'} on port ${httpGet.port}`
        : tcpSocket !== undefined
          ? `TCP to port ${tcpSocket.port}`
          : `gRPC on port ${grpc?.port}`;
  return `${what}, every ${periodSeconds} s within ${timeoutSeconds} s, failing after ${failureThreshold} in a row`;
}

/**
 * A Pod counts as running again only if a container was restarted within this time. Source: the kubelet resets a container's back-off after
 * a run of ten minutes.
 */
const RECENT_MILLIS = 10 * 60 * 1000;

export function explainRunning(subject: Living): Explanation {
  const { name, now } = subject;
  const ready = conditionOf(subject, 'Ready');
  const since = parseTime(ready?.lastTransitionTime);
  const shown = shownContainers(subject).filter(({ status }) => status.state?.running !== undefined);
  const count = shown.length === 1 ? 'its container is' : `all ${shown.length} containers are`;
  const restarted = shown
    .flatMap(({ kind, name: own, status }) => {
      const last = status.lastState?.terminated;
      const at = parseTime(last?.finishedAt);
      return last === undefined || at === undefined || now - at > RECENT_MILLIS
        ? []
        : [{ kind, name: own, status, last, at }];
    })
    .sort((a, b) => b.at - a.at)[0];
  if (restarted !== undefined) {
    const { last, at, status } = restarted;
    return {
      sentence: `${name} is running again: ${called(restarted)} was restarted ${status.restartCount}×, the last time ${ago(at, now)}, when it had ended with code ${last.exitCode} (${last.reason}).`,
      evidence: [...stopReason(subject, restarted.name), ...lastWords(subject, restarted.name, last.message)],
      advice: `see its previous output: lifepod logs ${name} -n ${subject.namespace} -c ${restarted.name} --previous`,
    };
  }
  return {
    sentence: `${name} is running: ${count} ready${since === undefined ? '' : `, for ${forTime(since, now)}`}.`,
    evidence: shown.map(({ kind, name: own, status }) => {
      const last = status.lastState?.terminated;
      const restarts =
        status.restartCount === 0
          ? 'never restarted'
          : `restarted ${status.restartCount}×${last === undefined ? '' : `, last after code ${last.exitCode} (${last.reason})`}`;
      return `${called({ kind, name: own })}: ${restarts}`;
    }),
    advice: `there is nothing to do; ${timeline(subject)}`,
  };
}
