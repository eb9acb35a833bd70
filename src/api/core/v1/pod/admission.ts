/**
 * Admission of new Pods that depends on other objects: the plugins ServiceAccount and Priority. The caller looks up the other objects.
 * Source: plugin/pkg/admission/serviceaccount and plugin/pkg/admission/priority of v1.33 (behavior and wording).
 */
import { deepFreeze } from '../../../../machinery/deep-freeze.ts';
import type { Container, Pod, PriorityClass, ProjectedVolumeSource, ServiceAccount } from '../../../generated/types.ts';
import { forbiddenPod } from './forbidden-pod.ts';

export const SERVICE_ACCOUNT_MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
export const DEFAULT_SERVICE_ACCOUNT = 'default';

/** The lifetime of the tokens in an added volume: one hour and 7 s. The 7 s distinguish these tokens from tokens that users request. */
const TOKEN_SECONDS = 3607;
const FILE_MODE = 0o644;

/** Every cluster has these priority classes. */
export const systemPriorities: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

export const serviceAccountNameOf = (pod: Pod): string => pod.spec?.serviceAccountName || DEFAULT_SERVICE_ACCOUNT;

const DEFAULT_POLICY = 'PreemptLowerPriority';

/** The class of Pods that name no class: the default class with the lowest value; undefined if there is no default class. */
export const defaultPriorityClass = (classes: readonly PriorityClass[]): PriorityClass | undefined =>
  classes.filter(({ globalDefault }) => globalDefault === true).sort((a, b) => (a.value ?? 0) - (b.value ?? 0))[0];

/**
 * Sets the Pod's priority and preemption policy to the values of its class. Throws 403 if the named class is neither in `classes` nor a
 * system class, or if the Pod specifies another priority or policy.
 */
export function admitPriority(pod: Pod, classes: readonly PriorityClass[]): void {
  const { spec } = pod;
  if (spec === undefined) return;
  const refuse = (cause: string) => forbiddenPod(pod, cause);
  const priorityClass = spec.priorityClassName
    ? classes.find(({ metadata }) => metadata.name === spec.priorityClassName)
    : defaultPriorityClass(classes);
  const known = systemPriorities[spec.priorityClassName ?? ''];
  if (spec.priorityClassName && priorityClass === undefined && known === undefined)
    throw refuse(`no PriorityClass with name ${spec.priorityClassName} was found`);
  const priority = priorityClass?.value ?? known ?? 0;
  const policy = priorityClass?.preemptionPolicy ?? DEFAULT_POLICY;
  const computed = (what: string, given: string | number, is: string | number) =>
    refuse(
      `the ${what} (${given}) must not be provided in pod spec; priority admission controller computed ${is} from the given PriorityClass name`,
    );
  if (spec.priority !== undefined && spec.priority !== priority)
    throw computed('integer value of priority', spec.priority, priority);
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy)
    throw computed('string value of PreemptionPolicy', spec.preemptionPolicy, policy);
  if (priorityClass !== undefined) spec.priorityClassName = priorityClass.metadata.name;
  spec.priority = priority;
  spec.preemptionPolicy = policy;
}

/**
 * Sets the name of the Pod's ServiceAccount, and adds the account's pull secrets if the Pod has none. Mounts a volume with a token, the
 * cluster's CA and the name of the namespace, unless automountServiceAccountToken of the Pod or, by default, of the account is false. A
 * container with another mount at SERVICE_ACCOUNT_MOUNT_PATH keeps this mount. `volumeSuffix`: the random end of the name of an added
 * volume.
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
  for (const container of [...(spec.initContainers ?? []), ...spec.containers, ...(spec.deferContainers ?? [])]) {
    mounted = addMount(container, volumeName) || mounted;
  }
  if (mounted && existing === undefined) {
    spec.volumes = [...(spec.volumes ?? []), { name: volumeName, projected: TOKEN_PROJECTION }];
  }
}

function addMount(container: Container, volumeName: string): boolean {
  const mounts = container.volumeMounts ?? [];
  if (mounts.some((mount) => mount.mountPath === SERVICE_ACCOUNT_MOUNT_PATH)) return false;
  container.volumeMounts = [...mounts, { name: volumeName, readOnly: true, mountPath: SERVICE_ACCOUNT_MOUNT_PATH }];
  return true;
}

/** The content of the added volumes. All Pods share it, because a copy would take 0.7 kB of the memory of each Pod. */
export const TOKEN_PROJECTION: ProjectedVolumeSource = deepFreeze({
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
});
