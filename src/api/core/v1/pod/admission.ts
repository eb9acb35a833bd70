/**
 * What upstream's admission plugins do to a new Pod with the help of other objects: ServiceAccount and Priority.
 * Pure; the API server looks the objects up and calls these on create, after the defaults.
 * Source: plugin/pkg/admission/serviceaccount and plugin/pkg/admission/priority of v1.33 (behaviour and wording).
 */
import { forbidden } from '../../../../machinery/status.ts';
import type { Container, Pod, ServiceAccount, Volume } from '../../../generated/types.ts';

export const SERVICE_ACCOUNT_MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
export const DEFAULT_SERVICE_ACCOUNT = 'default';

/** One hour, and 7 s to tell tokens of this volume from those that users ask for. */
const TOKEN_SECONDS = 3607;
const FILE_MODE = 0o644;

/** The priority classes that every cluster has. */
const systemPriorities: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

/** 0 without a class, and for a class that is not known (admitPriority refuses it). */
export const priorityOfClass = (className: string | undefined): number => systemPriorities[className ?? ''] ?? 0;

/** The name of the ServiceAccount that the Pod runs as. */
export const serviceAccountNameOf = (pod: Pod): string => pod.spec?.serviceAccountName || DEFAULT_SERVICE_ACCOUNT;

/** Throws 403 where the Pod names a priority class that does not exist, or a priority of its own. */
export function admitPriority(pod: Pod): void {
  const refuse = (cause: string) => forbidden({ group: '', resource: 'pods' }, pod.metadata.name ?? '', cause);
  const className = pod.spec?.priorityClassName;
  if (className && systemPriorities[className] === undefined) {
    throw refuse(`no PriorityClass with name ${className} was found`);
  }
  const priority = priorityOfClass(className);
  const asked = pod.spec?.priority;
  if (asked !== undefined && asked !== priority) {
    throw refuse(
      `the integer value of priority (${asked}) must not be provided in pod spec; priority admission controller computed ${priority} from the given PriorityClass name`,
    );
  }
}

/**
 * Sets the account's name, its pull secrets where the Pod has none, and mounts a token, the cluster's CA and the
 * namespace's name where a container has nothing at that place. `volumeSuffix` is five random characters of a-z0-9.
 */
export function admitServiceAccount(pod: Pod, account: ServiceAccount | undefined, volumeSuffix: string): void {
  const spec = pod.spec;
  if (spec === undefined) return;
  const name = serviceAccountNameOf(pod);
  spec.serviceAccountName = name;
  spec.serviceAccount = name;
  if ((spec.imagePullSecrets ?? []).length === 0 && (account?.imagePullSecrets ?? []).length > 0) {
    spec.imagePullSecrets = structuredClone(account?.imagePullSecrets);
  }
  if (spec.automountServiceAccountToken ?? account?.automountServiceAccountToken ?? true) {
    mountToken(pod, volumeSuffix);
  }
}

function mountToken(pod: Pod, volumeSuffix: string): void {
  const spec = pod.spec;
  if (spec === undefined) return;
  const existing = (spec.volumes ?? []).find((volume) => volume.name.startsWith('kube-api-access-'))?.name;
  const volumeName = existing ?? `kube-api-access-${volumeSuffix}`;
  let mounted = false;
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
    mounted = addMount(container, volumeName) || mounted;
  }
  if (mounted && existing === undefined) spec.volumes = [...(spec.volumes ?? []), tokenVolume(volumeName)];
}

function addMount(container: Container, volumeName: string): boolean {
  const mounts = container.volumeMounts ?? [];
  if (mounts.some((mount) => mount.mountPath === SERVICE_ACCOUNT_MOUNT_PATH)) return false;
  container.volumeMounts = [...mounts, { name: volumeName, readOnly: true, mountPath: SERVICE_ACCOUNT_MOUNT_PATH }];
  return true;
}

const tokenVolume = (name: string): Volume => ({
  name,
  projected: {
    defaultMode: FILE_MODE,
    sources: [
      { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
  },
});
