/** All containers of a Pod, in the order of its life, each with its status. Pure. */
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
      return { kind, name, status: found };
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

/** Waiting reasons of a container whose turn has not come; they do not indicate a problem. */
const TURN_REASONS = ['PodInitializing', 'ContainerCreating', 'PodRunning', 'PendingDefer'];

export function waitsForItsTurn({ status: { termination } = {} }: Pod, { kind, status }: PodContainer): boolean {
  if (status === undefined) return true;
  if (runOf(status) !== undefined) return false;
  const { waiting, terminated } = status.state ?? {};
  // An entry that was skipped has terminated without a run.
  if (terminated !== undefined) return true;
  // The image of a defer container is pulled long before its turn, so it may report a missing image while the Pod runs.
  if (kind === 'defer' && termination === undefined) return true;
  return waiting?.reason === undefined || TURN_REASONS.includes(waiting.reason);
}

/** The image that a container ran, or would run now; empty if it has none. */
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

/** Whether the container waits for an image that cannot be obtained. */
export const lacksImage = ({ state }: ContainerStatus): boolean => IMAGE_REASONS.includes(state?.waiting?.reason ?? '');

/** Whether a run of the container has ever begun, whatever its current state. */
export const ranBefore = (status: ContainerStatus): boolean =>
  (status.containerID ?? '') !== '' || status.restartCount > 0 || status.lastState?.terminated !== undefined;

/** The container ID of the last run that has begun; undefined if there was none. */
export function runOf(status: ContainerStatus | undefined): string | undefined {
  // The container of a waiting state may have been created but has not run; the last run is the previous one.
  if (status?.state?.waiting !== undefined) return status.lastState?.terminated?.containerID;
  return status?.containerID || undefined;
}
