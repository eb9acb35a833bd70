import type { DeferContainer } from '../api/generated/types.ts';
import { parseTime } from '../machinery/time.ts';
import type { RunScript } from '../runtime/simulated/simulated-runtime.ts';
import { type Life, type LifeResult, live } from './pod-life.ts';
import { simulatedPod } from './simulated-pod.ts';

export const forever: RunScript[] = [{ stopMillis: 100 }];
export const once = (runMillis: number, exitCode = 0): RunScript[] => [{ runMillis, exitCode }];
export const post: Partial<DeferContainer> = { trigger: 'PostExit' };
export const probe = { exec: { command: ['check'] } };

export type Given = Partial<Life> & { pods?: Partial<Parameters<typeof simulatedPod>[0]> };

/**
 * Runs the life of a Pod with the defer containers (entries) `defers`. By default, the app runs until it is stopped, the first three
 * entries run 1 s each, and the Pod is deleted after 10 s with a grace period of 30 s.
 */
export function lifeOf(defers: Partial<DeferContainer>[], { pods, scripts, ...life }: Given = {}): Promise<LifeResult> {
  return live({
    pod: simulatedPod({ apps: ['app'], defers, ...pods }),
    scripts: { app: forever, 'defer-1': once(1000), 'defer-2': once(1000), 'defer-3': once(1000), ...scripts },
    deletions: [{ at: 10_000, graceSeconds: 30 }],
    limitMillis: 400_000,
    ...life,
  });
}

/** Returns starts, stop signals and exits as texts such as `start app`. Without `names`, includes all containers. */
export const steps = ({ trace }: LifeResult, ...names: string[]): string[] =>
  trace
    .filter(
      ({ what, name }) => ['start', 'signal', 'exit'].includes(what) && (names.length === 0 || names.includes(name)),
    )
    .map(({ what, name, attempt, exitCode }) =>
      what === 'exit' ? `${name} exits ${exitCode}` : `${what} ${name}${attempt === 0 ? '' : `#${attempt}`}`,
    );
export const deferStates = ({ statuses }: LifeResult): string[] =>
  (statuses.at(-1)?.status.deferContainerStatuses ?? []).map(({ state }) => stateOf(state));
export const stateOf = (state: object | undefined): string => {
  const [[kind, detail] = ['none', {}]] = Object.entries(state ?? {});
  return `${kind} ${(detail as { reason?: string } | undefined)?.reason ?? ''}`.trim();
};
export const deferred = ({ statuses }: LifeResult) =>
  statuses.at(-1)?.status.conditions?.find(({ type }) => type === 'Deferred');
export const phases = ({ statuses }: LifeResult): string[] =>
  statuses.map(({ status }) => status.phase ?? '').filter((phase, i, all) => phase !== all[i - 1]);
export const eventsOf = ({ events }: LifeResult, ...reasons: string[]): string[] =>
  events
    .filter(({ reason }) => reasons.includes(reason))
    .map(({ reason, fieldPath }) => `${reason} ${fieldPath ?? ''}`.trim());
export const termination = ({ statuses }: LifeResult) =>
  statuses.flatMap(({ status }) => (status.termination === undefined ? [] : [status.termination]));
export const deadlines = (result: LifeResult): number[] =>
  termination(result)
    .map(({ deadline }) => (parseTime(deadline) ?? 0) - result.start)
    .filter((deadline, i, all) => deadline !== all[i - 1]);
