/** Warns about valid settings that are probably a mistake. Source: the specification of defer containers, "Validation". */
import type { DeferContainer, PodSpec } from '../../../../generated/types.ts';
import { runsBeforeExit } from '../containers.ts';

/** The time for running PreExit entries and stopping the app containers. */
const RECOMMENDED_SECONDS = 10;

export function deferWarnings(spec: PodSpec): string[] {
  const entries = spec.deferContainers ?? [];
  if (entries.length === 0) return [];
  const { terminationGracePeriodSeconds: given = 0, postExitGracePeriodSeconds: reserve } = spec;
  const graceSeconds = given < 0 ? 1 : given;
  const left = graceSeconds - (reserve ?? 0);
  return [
    ...entries.flatMap((entry, index) => entryWarnings(entry, graceSeconds, `spec.deferContainers[${index}]`)),
    ...(reserve === undefined || left >= RECOMMENDED_SECONDS
      ? []
      : [
          `spec.postExitGracePeriodSeconds: leaves ${left} s of the grace period to entries with trigger PreExit and to app containers; at least ${RECOMMENDED_SECONDS} s are recommended`,
        ]),
    ...(graceSeconds === 0
      ? ['spec.terminationGracePeriodSeconds: with a grace period of 0 defer container entries will not run on delete']
      : []),
  ];
}

function entryWarnings(entry: DeferContainer, graceSeconds: number, path: string): string[] {
  const { restartPolicy = 'Never', timeoutSeconds } = entry;
  const at = `${path}.timeoutSeconds`;
  if (timeoutSeconds !== undefined) {
    return timeoutSeconds > graceSeconds
      ? [`${at}: longer than the grace period of ${graceSeconds} s, which ends the entry earlier`]
      : [];
  }
  return [
    ...(restartPolicy === 'Never'
      ? []
      : [`${at}: not set; with restartPolicy ${restartPolicy} a failing entry is retried until its stage ends`]),
    ...(runsBeforeExit(entry)
      ? [`${at}: not set; an entry with trigger PreExit that hangs leaves the app containers 2 s to stop`]
      : []),
  ];
}
