/** Queries about the containers of a Pod and their statuses. Pure. */
import { containersOf } from '../api/core/v1/pod/containers.ts';
import { podSummary } from '../api/core/v1/pod/status/summary.ts';
import type { Container, ContainerStatus, EphemeralContainer, Pod, Volume } from '../api/generated/types.ts';
import { normalizeReference, referenceError } from '../runtime/images/references.ts';

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';

export interface PodContainer {
  kind: ContainerKind;
  name: string;
  /** True for a sidecar, whose kind is init; absent for other containers. */
  isSidecar?: true;
  status?: ContainerStatus;
}

/** Returns all containers of the Pod with their statuses: init, app, defer, then ephemeral containers. */
export function podContainers({ spec = { containers: [] }, status = {} }: Pod): PodContainer[] {
  const of = (
    kind: ContainerKind,
    containers: readonly (Container | EphemeralContainer)[] = [],
    statuses: readonly ContainerStatus[] = [],
  ): PodContainer[] =>
    containers.map((container) => {
      const { name } = container;
      const found = statuses.find((each) => each.name === name);
      const isSidecar = kind === 'init' && 'restartPolicy' in container && container.restartPolicy === 'Always';
      return { kind, name, ...(isSidecar && { isSidecar }), status: found };
    });
  return [
    ...of('init', spec.initContainers, status.initContainerStatuses),
    ...of('app', spec.containers, status.containerStatuses),
    ...of('defer', spec.deferContainers, status.deferContainerStatuses),
    ...of('ephemeral', spec.ephemeralContainers, status.ephemeralContainerStatuses),
  ];
}

/**
 * Returns the column STATUS of kubectl, but not Completed for a failed Pod: kubectl shows the end of the first app container, even if
 * another one or a defer container has failed.
 */
export function statusWord(pod: Pod): string {
  const { status } = podSummary(pod);
  if (pod.status?.phase !== 'Failed' || status !== 'Completed') return status;
  const ends = podContainers(pod).flatMap(({ kind, status: own }) =>
    kind === 'app' ? (own?.state?.terminated ?? []) : [],
  );
  return pod.status.reason || ends.find(({ exitCode }) => exitCode !== 0)?.reason || 'Failed';
}

/** Returns a list such as `app, web, shell (ephem), init (init), bye (defer)`. Source: kubectl logs, which has no defer containers. */
export function containerNames(pod: Pod): string {
  const containers = podContainers(pod);
  const of = (kind: ContainerKind, mark: string): string[] =>
    containers.filter((each) => each.kind === kind).map(({ name }) => name + mark);
  return [...of('app', ''), ...of('ephemeral', ' (ephem)'), ...of('init', ' (init)'), ...of('defer', ' (defer)')].join(
    ', ',
  );
}

/** Reasons of `waiting` for the container's turn or its creation. */
const TURN_REASONS = ['PodInitializing', 'ContainerCreating', 'PodRunning', 'PendingDefer'];

/** Returns why the container waits, such as CrashLoopBackOff; undefined if it does not wait, or only for its turn or its creation. */
export function waitingProblem({ state }: ContainerStatus): string | undefined {
  const reason = state?.waiting?.reason;
  return reason === undefined || TURN_REASONS.includes(reason) ? undefined : reason;
}

/** Returns whether the container has not run, and waits for its turn, is being created, or has ended without a run. */
export function waitsForItsTurn({ status: { termination } = {} }: Pod, { kind, status }: PodContainer): boolean {
  if (status === undefined) return true;
  if (runOf(status) !== undefined) return false;
  const { waiting, terminated } = status.state ?? {};
  // For example, a defer container was skipped or could not start.
  if (terminated !== undefined) return true;
  // The image of a defer container is pulled long before its turn, so its status may report a missing image while the Pod runs.
  if (kind === 'defer' && termination === undefined) return true;
  return waiting?.reason === undefined || TURN_REASONS.includes(waiting.reason);
}

/**
 * Returns the image that the container needs for its next run, which the spec names directly or by imageFrom; empty if there is none. The
 * status of a waiting container may still contain the image of its last run.
 */
export function imageOf({ spec }: Pod, { name }: { name: string }): string {
  const all: { name: string; image?: string; imageFrom?: string }[] = [
    ...(spec?.initContainers ?? []),
    ...(spec?.containers ?? []),
    ...(spec?.deferContainers ?? []),
    ...(spec?.ephemeralContainers ?? []),
  ];
  const own = all.find((each) => each.name === name);
  return own?.image || all.find((each) => each.name === own?.imageFrom)?.image || '';
}

interface Waiting {
  name: string;
  status?: Pick<ContainerStatus, 'state'> | undefined;
}

export interface WantedImage {
  reference: string;
  /** The volume whose image this is; undefined: it is the image of the container. */
  volume?: Volume;
}

/**
 * Returns the image that the message of the waiting container quotes, which is that of a volume or of the container; the image of the
 * container if the message quotes none. If both have this image, returns the volume only if no container runs yet, and the volume alone has
 * the pull policy that leads to the message: Never for ErrImageNeverPull, else Always.
 * Source: the messages of the node, which quote the reference, and those of the runtimes, which quote its complete form.
 */
export function wantedImage(pod: Pod, waiting: Waiting): WantedImage {
  const own = imageOf(pod, waiting);
  const { reason, message = '' } = waiting.status?.state?.waiting ?? {};
  const quoted = new Set<string | undefined>(
    [...message.matchAll(/"([^"\\]+)"/g)].flatMap(([, text = '']) => completed(text) ?? []),
  );
  const volumes = pod.spec?.volumes?.filter(({ image }) => quoted.has(completed(image?.reference))) ?? [];
  const pulled = reason === 'ErrImageNeverPull' ? 'Never' : 'Always';
  const likely = volumes.find(({ image }) => image?.pullPolicy === pulled);
  const isOwn = quoted.has(completed(own));
  const isOwnLikely = likely === undefined || ownPolicy(pod, waiting) === pulled;
  const volume = isOwn && (isOwnLikely || isAnyRunning(pod)) ? undefined : (likely ?? volumes[0]);
  return volume === undefined ? { reference: own } : { reference: volume.image?.reference ?? '', volume };
}

/** Returns whether a container of the Pod runs. If so, the volumes are mounted, so the Pod does not wait for the image of a volume. */
const isAnyRunning = (pod: Pod): boolean =>
  podContainers(pod).some(({ status }) => status?.state?.running !== undefined);

const ownPolicy = (pod: Pod, { name }: Waiting): string | undefined =>
  containersOf(pod).find((each) => each.name === name)?.imagePullPolicy;

/** Returns the pull policy of the image for which the container waits. */
export function pullPolicyOf(pod: Pod, waiting: Waiting): string | undefined {
  const { volume } = wantedImage(pod, waiting);
  return volume === undefined ? ownPolicy(pod, waiting) : volume.image?.pullPolicy;
}

/** Returns the name of the field with the pull policy of these images. */
export function policyField(pod: Pod, waiting: readonly Waiting[]): string {
  const ofVolumes = waiting.filter((each) => wantedImage(pod, each).volume !== undefined);
  const alike = waiting.flatMap((each) => sameVolume(pod, each) ?? []);
  if (ofVolumes.length === 0)
    return alike.length === 0 ? 'imagePullPolicy' : `imagePullPolicy, and pullPolicy of the volume ${alike[0]?.name}`;
  return ofVolumes.length === waiting.length ? 'pullPolicy' : 'imagePullPolicy (pullPolicy of the volume)';
}

/** Returns the volume with the image and the pull policy for which the container waits, if the image is that of the container, too. */
function sameVolume(pod: Pod, waiting: Waiting): Volume | undefined {
  const { reference, volume } = wantedImage(pod, waiting);
  const policy = ownPolicy(pod, waiting);
  if (volume !== undefined || policy === undefined) return undefined;
  return pod.spec?.volumes?.find(
    ({ image }) => image?.pullPolicy === policy && completed(image.reference) === completed(reference),
  );
}

/**
 * Returns the complete form of the reference; undefined for none. A reference that is not valid has no such form, and messages quote it as
 * it is.
 */
const completed = (reference = ''): string | undefined =>
  referenceError(reference) === undefined ? normalizeReference(reference) : reference || undefined;

export function itsImage(pod: Pod, waiting: Waiting): string {
  const { reference, volume } = wantedImage(pod, waiting);
  return volume === undefined ? `its image ${reference}` : `the image ${reference} of its volume ${volume.name}`;
}

export const IMAGE_REASONS: readonly string[] = [
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
];

/**
 * Matches two messages about names that are not valid: that of a runtime, and that of the node about an image with the policy Never whose
 * registry has capital letters, such as "UP/x:1". The node accepts such a name, but older runtimes refuse it.
 */
const INVALID_NAME = /invalid reference format|^Container image "(?=[^/".:]*[A-Z])[^/".:]+\//;

/** Returns whether the container waits for an image whose name is not valid. Source: the messages of the node and of the runtimes. */
export const hasInvalidName = ({ state }: Pick<ContainerStatus, 'state'>): boolean =>
  state?.waiting?.reason === 'InvalidImageName' || INVALID_NAME.test(state?.waiting?.message ?? '');

export const lacksImage = ({ state }: ContainerStatus): boolean => IMAGE_REASONS.includes(state?.waiting?.reason ?? '');

/** Returns whether a run of the container has begun. The result is wrong for a waiting container that has the ID of its next run. */
export const ranBefore = (status: ContainerStatus): boolean =>
  (status.containerID ?? '') !== '' || status.restartCount > 0 || status.lastState?.terminated !== undefined;

/** Returns the container ID of the last run that has begun; undefined if no run has begun. */
export function runOf(status: ContainerStatus | undefined): string | undefined {
  // While the container waits, containerID may name a container that has not run.
  if (status?.state?.waiting !== undefined) return status.lastState?.terminated?.containerID;
  return status?.containerID || undefined;
}
