/**
 * Computes the security context of a container: its own settings take precedence over the Pod's. Also checks runAsNonRoot. Pure.
 * Source: "Configure a Security Context" of the v1.33 documentation; pkg/kubelet/kuberuntime security_context (error texts).
 */
import { join } from 'node:path';
import type { AppArmorProfile, Container, EphemeralContainer, Pod, SeccompProfile } from '../../api/generated/types.ts';
import type { ContainerConfig, ImageInfo } from '../../runtime/runtime.ts';
import { ContainerConfigError } from './container-config-error.ts';

type Security = ContainerConfig['security'];

/** `seccompRoot`: the folder of Localhost seccomp profiles. Throws a ContainerConfigError if the container violates runAsNonRoot. */
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

/** The Pod's policy for supplemental groups; containers have no such field. */
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

/** The user part of the image's `user[:group]`. Without one, the image runs as root. */
const imageUserName = (image: ImageInfo): string => (image.user ?? '').split(':')[0] as string;
const isNumber = (text: string): boolean => /^\d+$/.test(text);

/** Sets the image's user explicitly: CRI accepts a group only with a user, and some runtimes add a user's groups only if it is set. */
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
