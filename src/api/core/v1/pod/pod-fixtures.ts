import type {
  Container,
  ContainerStatus,
  DeferContainer,
  Node,
  Pod,
  PodSpec,
  PodStatus,
} from '../../../generated/types.ts';
import { defaultPod } from './defaults.ts';

/** A Pod without defaults. It has one container unless `spec` contains containers. */
export const podOf = (spec: Partial<PodSpec> = {}, status?: PodStatus): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default', uid: 'u1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { containers: [containerOf('app')], ...spec },
  ...(status && { status }),
});

export const containerOf = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: 'busybox:1.28',
  ...more,
});

export const deferOf = (name: string, more: Partial<DeferContainer> = {}): DeferContainer => ({
  name,
  image: 'busybox:1.28',
  ...more,
});

export function defaulted(pod: Pod): Pod {
  const copy = structuredClone(pod);
  defaultPod(copy);
  return copy;
}

export const statusOf = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  image: 'busybox:1.28',
  imageID: '',
  ready: false,
  restartCount: 0,
  ...more,
});

export const nodeOf = (
  name: string,
  more: { spec?: Node['spec']; allocatable?: Record<string, string> } = {},
): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { 'kubernetes.io/hostname': name } },
  spec: more.spec ?? {},
  status: { allocatable: more.allocatable ?? { cpu: '2', memory: '4Gi', pods: '110' } },
});
