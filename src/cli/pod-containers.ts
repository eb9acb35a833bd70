/** The containers of a Pod of every kind, in the order of its life, and what its status says of each. Pure. */
import type { Container, ContainerStatus, EphemeralContainer, Pod } from '../api/generated/types.ts';

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';

export interface PodContainer {
  kind: ContainerKind;
  name: string;
  status?: ContainerStatus;
}

/** Init, app, defer, ephemeral. */
export function podContainers({ spec = { containers: [] }, status = {} }: Pod): PodContainer[] {
  const of = (
    kind: ContainerKind,
    containers: readonly (Container | EphemeralContainer)[] = [],
    statuses: readonly ContainerStatus[] = [],
  ): PodContainer[] =>
    containers.map(({ name }) => {
      const found = statuses.find((each) => each.name === name);
      return { kind, name, ...(found === undefined ? {} : { status: found }) };
    });
  return [
    ...of('init', spec.initContainers, status.initContainerStatuses),
    ...of('app', spec.containers, status.containerStatuses),
    ...of('defer', spec.deferContainers, status.deferContainerStatuses),
    ...of('ephemeral', spec.ephemeralContainers, status.ephemeralContainerStatuses),
  ];
}

/** `app, web, shell (ephem), init (init), bye (defer)`. Source: kubectl's list of names, and the defer containers. */
export function containerNames(pod: Pod): string {
  const containers = podContainers(pod);
  const of = (kind: ContainerKind, mark: string): string[] =>
    containers.filter((each) => each.kind === kind).map(({ name }) => name + mark);
  return [...of('app', ''), ...of('ephemeral', ' (ephem)'), ...of('init', ' (init)'), ...of('defer', ' (defer)')].join(
    ', ',
  );
}

/** Why a container that has not run yet waits where nothing is wrong: its turn has not come. */
const TURN_REASONS = ['PodInitializing', 'ContainerCreating', 'PodRunning', 'PendingDefer'];

export function waitsForItsTurn({ status: { termination } = {} }: Pod, { kind, status }: PodContainer): boolean {
  if (status === undefined) return true;
  if (runOf(status) !== undefined) return false;
  const { waiting, terminated } = status.state ?? {};
  // An entry that was skipped has terminated without a run.
  if (terminated !== undefined) return true;
  // Its image is pulled long before its turn, and may be missing already.
  if (kind === 'defer' && termination === undefined) return true;
  return waiting?.reason === undefined || TURN_REASONS.includes(waiting.reason);
}

/** The image that a container of the spec ran, or would run now; empty if it has none. */
export function imageOf({ spec, status }: Pod, { name }: { name: string }): string {
  const all: { name: string; image?: string; imageFrom?: string }[] = [
    ...(spec?.initContainers ?? []),
    ...(spec?.containers ?? []),
    ...(spec?.deferContainers ?? []),
    ...(spec?.ephemeralContainers ?? []),
  ];
  const own = all.find((each) => each.name === name);
  const shown = podContainers({ spec, status } as Pod).find((each) => each.name === name)?.status?.image;
  return shown || own?.image || all.find((each) => each.name === own?.imageFrom)?.image || '';
}

const IMAGE_REASONS = [
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
];

/** It waits for an image that cannot be had. */
export const lacksImage = ({ state }: ContainerStatus): boolean => IMAGE_REASONS.includes(state?.waiting?.reason ?? '');

/** Some run of it has begun, whatever its present state says. */
export const ranBefore = (status: ContainerStatus): boolean =>
  (status.containerID ?? '') !== '' || status.restartCount > 0 || status.lastState?.terminated !== undefined;

/** The last run that has begun: the ID of its container; undefined where there was none. */
export function runOf(status: ContainerStatus | undefined): string | undefined {
  // One that waits may have been created already: what has run is the one before.
  if (status?.state?.waiting !== undefined) return status.lastState?.terminated?.containerID;
  return status?.containerID || undefined;
}
