/**
 * The labels by which lifepod finds what it has created in the runtime. The labels of upstream's kubelet carry identity
 * (k8s.io/kubernetes pkg/kubelet/types/labels.go), so that other tools that read a runtime understand them.
 */
import type { ContainerKind, PodIdentity } from '../runtime.ts';

export const POD_UID_LABEL = 'io.kubernetes.pod.uid';
const POD_NAME_LABEL = 'io.kubernetes.pod.name';
const POD_NAMESPACE_LABEL = 'io.kubernetes.pod.namespace';
export const CONTAINER_NAME_LABEL = 'io.kubernetes.container.name';
/** init, app, defer or ephemeral. */
const KIND_LABEL = 'lifepod.io/kind';
/** restartCount of a container's run, or number of a Pod's sandbox. */
export const ATTEMPT_LABEL = 'lifepod.io/attempt';
/** The image as named in the Pod's spec; CRI itself keeps only the image that the name resolved to. */
const IMAGE_ANNOTATION = 'lifepod.io/image';

export type Labels = Record<string, string>;

export const podLabels = (pod: PodIdentity, attempt: number): Labels => ({
  [POD_UID_LABEL]: pod.uid,
  [POD_NAME_LABEL]: pod.name,
  [POD_NAMESPACE_LABEL]: pod.namespace,
  [ATTEMPT_LABEL]: String(attempt),
});

export const containerLabels = (pod: PodIdentity, name: string, kind: ContainerKind, attempt: number): Labels => ({
  ...podLabels(pod, attempt),
  [CONTAINER_NAME_LABEL]: name,
  [KIND_LABEL]: kind,
});

export const podUidOf = (labels: Labels): string => labels[POD_UID_LABEL] ?? '';

const KINDS: ReadonlySet<string> = new Set<ContainerKind>(['init', 'app', 'defer', 'ephemeral']);

/** A kubelet may keep its Pods in the same runtime, with the same labels except this one. */
export const isOurs = (labels: Labels): boolean => labels[ATTEMPT_LABEL] !== undefined;

export function kindOf(labels: Labels): ContainerKind | undefined {
  const kind = labels[KIND_LABEL];
  return kind !== undefined && KINDS.has(kind) ? (kind as ContainerKind) : undefined;
}

export const withImageName = (annotations: Labels, imageName: string): Labels => ({
  ...annotations,
  [IMAGE_ANNOTATION]: imageName,
});

export function splitImageName(annotations: Labels): { image: string | undefined; annotations: Labels } {
  const { [IMAGE_ANNOTATION]: image, ...rest } = annotations;
  return { image, annotations: rest };
}
