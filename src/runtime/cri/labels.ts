/**
 * The labels by which lifepod finds its sandboxes and containers in the runtime. The labels for the Pod and the container name are the
 * labels of upstream's kubelet (k8s.io/kubelet pkg/types/labels.go), so that other tools for the runtime understand them.
 */
import type { ContainerKind, PodIdentity } from '../runtime.ts';

export const POD_UID_LABEL = 'io.kubernetes.pod.uid';
const POD_NAME_LABEL = 'io.kubernetes.pod.name';
const POD_NAMESPACE_LABEL = 'io.kubernetes.pod.namespace';
export const CONTAINER_NAME_LABEL = 'io.kubernetes.container.name';
const KIND_LABEL = 'lifepod.io/kind';
/** The label with the attempt: on a container, its restartCount in this run; on a sandbox, its number among the Pod's sandboxes. */
export const ATTEMPT_LABEL = 'lifepod.io/attempt';
/** The annotation with the name of the image in the Pod's spec. Some runtimes store only the resolved image. */
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

/** Returns whether lifepod created the object. Objects of a kubelet in the same runtime have upstream's labels, but not ATTEMPT_LABEL. */
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
