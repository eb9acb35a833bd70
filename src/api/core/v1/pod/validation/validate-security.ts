/** Validates security contexts of Pods and containers. Source: validation of v1.33 (rules and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
} from '../../../../../machinery/field-error.ts';
import type { PodSecurityContext, PodSpec, SeccompProfile, SecurityContext } from '../../../../generated/types.ts';
import { validateAppArmor } from '../compatibility/app-armor.ts';
import { descendingPath, idErrors } from './validate-values.ts';

const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined'] as const;

const oneOf = (value: string | undefined, path: string, allowed: readonly string[]): FieldError[] =>
  value === undefined || allowed.includes(value) ? [] : [notSupported(path, value, allowed)];

export function validateSecurityContext(
  context: SecurityContext | undefined,
  hostUsers: boolean,
  path: string,
): FieldError[] {
  if (!context) return [];
  const errors = allErrors(
    idErrors(context.runAsUser, `${path}.runAsUser`),
    idErrors(context.runAsGroup, `${path}.runAsGroup`),
    oneOf(context.procMount, `${path}.procMount`, ['Default', 'Unmasked']),
  );
  if (hostUsers && context.procMount === 'Unmasked') {
    errors.push(invalid(`${path}.procMount`, context.procMount, '`hostUsers` must be false to use `Unmasked`'));
  }
  errors.push(...validateSeccomp(context.seccompProfile, `${path}.seccompProfile`));
  if (context.allowPrivilegeEscalation === false) {
    const clash = (other: string) => `cannot set \`allowPrivilegeEscalation\` to false and ${other}`;
    if (context.privileged) errors.push(invalid(path, context, clash('`privileged` to true')));
    if (context.capabilities?.add?.includes('CAP_SYS_ADMIN')) {
      errors.push(invalid(path, context, clash('`capabilities.Add` CAP_SYS_ADMIN')));
    }
  }
  return allErrors(errors, validateAppArmor(context.appArmorProfile, `${path}.appArmorProfile`));
}

export function validatePodSecurityContext(spec: PodSpec, path: string): FieldError[] {
  const context = spec.securityContext;
  if (!context) return [];
  return allErrors(
    idErrors(context.fsGroup, `${path}.fsGroup`),
    idErrors(context.runAsUser, `${path}.runAsUser`),
    idErrors(context.runAsGroup, `${path}.runAsGroup`),
    (context.supplementalGroups ?? []).flatMap((group, index) =>
      idErrors(group, `${path}.supplementalGroups[${index}]`),
    ),
    spec.shareProcessNamespace && spec.hostPID
      ? [
          invalid(
            `${path}.shareProcessNamespace`,
            spec.shareProcessNamespace,
            'ShareProcessNamespace and HostPID cannot both be enabled',
          ),
        ]
      : [],
    validateSysctls(context, spec, `${path}.sysctls`),
    oneOf(context.fsGroupChangePolicy, `${path}.fsGroupChangePolicy`, ['Always', 'OnRootMismatch']),
    validateSeccomp(context.seccompProfile, `${path}.seccompProfile`),
    validateAppArmor(context.appArmorProfile, `${path}.appArmorProfile`),
    oneOf(context.supplementalGroupsPolicy, `${path}.supplementalGroupsPolicy`, ['Merge', 'Strict']),
    oneOf(context.seLinuxChangePolicy, `${path}.seLinuxChangePolicy`, ['MountOption', 'Recursive']),
  );
}

function validateSeccomp(profile: SeccompProfile | undefined, path: string): FieldError[] {
  if (!profile) return [];
  const { type, localhostProfile } = profile;
  const errors = type
    ? oneOf(type, `${path}.type`, profileTypes)
    : [required(`${path}.type`, 'type is required when seccompProfile is set')];
  if (type === 'Localhost') {
    errors.push(
      ...(localhostProfile === undefined
        ? [required(`${path}.localhostProfile`, 'must be set when seccomp type is Localhost')]
        : descendingPath(localhostProfile, `${path}.localhostProfile`)),
    );
  } else if (localhostProfile !== undefined) {
    errors.push(invalid(`${path}.localhostProfile`, profile, 'can only be set when seccomp type is Localhost'));
  }
  return errors;
}

const sysctlSegment = '[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const sysctlPattern = `^(${sysctlSegment}[\\./])*${sysctlSegment}$`;
const sysctlRegexp = new RegExp(sysctlPattern);
const MAX_SYSCTL_LENGTH = 253;

function validateSysctls(context: PodSecurityContext, spec: PodSpec, path: string): FieldError[] {
  const seen = new Set<string>();
  return (context.sysctls ?? []).flatMap(({ name }, index) => {
    const at = `${path}[${index}].name`;
    const errors: FieldError[] = [];
    if (!name) errors.push(required(at));
    else if (name.length > MAX_SYSCTL_LENGTH || !sysctlRegexp.test(name)) {
      errors.push(
        invalid(at, name, `must have at most ${MAX_SYSCTL_LENGTH} characters and match regex ${sysctlPattern}`),
      );
    } else if (seen.has(name)) errors.push(duplicate(at, name));
    const dotted = (name ?? '').replaceAll('/', '.');
    if (spec.hostNetwork && dotted.startsWith('net.')) {
      errors.push(invalid(at, name, "may not be specified when 'hostNetwork' is true"));
    } else if (spec.hostIPC && /^(kernel\.(shm|msg)|kernel\.sem$|fs\.mqueue\.)/.test(dotted)) {
      errors.push(invalid(at, name, "may not be specified when 'hostIPC' is true"));
    }
    seen.add(name);
    return errors;
  });
}
