/**
 * The container's own settings take precedence over the Pod's settings. The functions are pure.
 * Source: "Configure a Security Context" of the v1.33 documentation; pkg/kubelet/kuberuntime security_context (error texts).
 */
import { join } from 'node:path';
import type { AppArmorProfile, Container, EphemeralContainer, Pod, SeccompProfile } from '../../api/generated/types.ts';
import type { ContainerConfig, ImageInfo } from '../../runtime/runtime.ts';
import { ContainerConfigError } from './container-config-error.ts';

type Security = ContainerConfig['security'];

/**
 * `seccompRoot`: the folder of Localhost seccomp profiles. Throws a ContainerConfigError if runAsNonRoot is true and the container would
 * run as root, or its user is only known by a name from the image.
 */
export function containerSecurity(
  pod: Pod,
  container: Container | EphemeralContainer,
  image: ImageInfo,
  seccompRoot: string,
): Security {
  const own = container.securityContext ?? {};
  const shared = pod.spec?.securityContext ?? {};
  const runAsUser = own.runAsUser ?? shared.runAsUser;
  const runAsGroup = own.runAsGroup ?? shared.runAsGroup;
  if (own.runAsNonRoot ?? shared.runAsNonRoot ?? false) verifyNonRoot(pod, container.name, runAsUser, image);
  const groups = [...(shared.supplementalGroups ?? []), ...(shared.fsGroup === undefined ? [] : [shared.fsGroup])];
  const seccomp = profile(own.seccompProfile ?? shared.seccompProfile, (name) => join(seccompRoot, name));
  const seLinux = own.seLinuxOptions ?? shared.seLinuxOptions;
  const apparmor = profile(own.appArmorProfile ?? shared.appArmorProfile, (name) => name);
  return {
    ...(own.privileged === true ? { privileged: true } : {}),
    ...(runAsUser === undefined ? imageUser(image) : { runAsUser }),
    runAsGroup,
    ...(groups.length === 0 ? {} : { supplementalGroups: groups }),
    ...(own.readOnlyRootFilesystem === true ? { readOnlyRootFilesystem: true } : {}),
    ...(own.allowPrivilegeEscalation === false ? { noNewPrivileges: true } : {}),
    addCapabilities: own.capabilities?.add,
    dropCapabilities: own.capabilities?.drop,
    seccomp: seccomp ?? { type: 'Unconfined' },
    apparmor,
    seLinux,
    ...groupsPolicy(pod),
    ...(own.procMount === 'Unmasked' ? { procMount: 'Unmasked' as const } : {}),
  };
}

export function groupsPolicy({ spec }: Pod): Pick<Security, 'supplementalGroupsPolicy'> {
  const policy = spec?.securityContext?.supplementalGroupsPolicy;
  return policy === 'Merge' || policy === 'Strict' ? { supplementalGroupsPolicy: policy } : {};
}

function profile(
  source: SeccompProfile | AppArmorProfile | undefined,
  localhostRef: (name: string) => string,
): Security['seccomp'] {
  if (source === undefined) return undefined;
  const type = source.type as 'RuntimeDefault' | 'Unconfined' | 'Localhost';
  return type === 'Localhost' ? { type, localhostRef: localhostRef(source.localhostProfile ?? '') } : { type };
}

/** Returns the user of the image's `user[:group]`; '' stands for root. */
const imageUserName = (image: ImageInfo): string => (image.user ?? '').split(':')[0] as string;
const isNumber = (text: string): boolean => /^\d+$/.test(text);

/**
 * The image's user is set explicitly: CRI accepts a group only together with a user, and some runtimes add the groups of a user only if the
 * user is set.
 */
function imageUser(image: ImageInfo): Pick<Security, 'runAsUser' | 'runAsUserName'> {
  const user = imageUserName(image);
  if (user === '') return { runAsUser: 0 };
  return isNumber(user) ? { runAsUser: Number(user) } : { runAsUserName: user };
}

function verifyNonRoot(pod: Pod, containerName: string, runAsUser: number | undefined, image: ImageInfo): void {
  const about = `(pod: "${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})", container: ${containerName})`;
  if (runAsUser !== undefined) {
    if (runAsUser === 0) throw new ContainerConfigError(`container's runAsUser breaks non-root policy ${about}`);
    return;
  }
  const user = imageUserName(image);
  if (user === '' || (isNumber(user) && Number(user) === 0)) {
    throw new ContainerConfigError(`container has runAsNonRoot and image will run as root ${about}`);
  }
  if (!isNumber(user)) {
    throw new ContainerConfigError(
      `container has runAsNonRoot and image has non-numeric user (${user}), cannot verify user is non-root ${about}`,
    );
  }
}
