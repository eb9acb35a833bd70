/** Validates updates of the status of a Pod. Source: ValidatePodStatusUpdate of v1.33, and the specification of defer containers. */

import { repeats } from '../../../../../machinery/duplicates.ts';
import { allErrors, duplicate, type FieldError, forbidden, invalid } from '../../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors, ipErrors, ipFamily, qualifiedNameErrors } from '../../../../../machinery/names.ts';
import { validateObjectMetaUpdate } from '../../../../../machinery/object-meta.ts';
import type { ContainerStatus, Pod, PodSpec, PodStatus } from '../../../../generated/types.ts';
import { isSidecar, specOf } from '../containers.ts';
import { validateTermination } from './validate-termination.ts';
import { validateFixedAnnotations } from './validate-update.ts';
import { nameErrors } from './validate-values.ts';

export function validatePodStatusUpdate(pod: Pod, old: Pod): FieldError[] {
  const status = pod.status ?? {};
  const oldStatus = old.status ?? {};
  const errors = allErrors(validateObjectMetaUpdate(pod.metadata, old.metadata), validateFixedAnnotations(pod, old));
  (status.conditions ?? []).forEach(({ type }, index) => {
    errors.push(...nameErrors(type ?? '', `metadata.conditions[${index}].Type`, qualifiedNameErrors));
  });
  const nominated = status.nominatedNodeName;
  if (nominated && nominated !== oldStatus.nominatedNodeName) {
    errors.push(...nameErrors(nominated, 'status.nominatedNodeName', dns1123SubdomainErrors));
  }
  if (status.qosClass !== oldStatus.qosClass) {
    errors.push(invalid('status.qosClass', status.qosClass, 'field is immutable'));
  }
  errors.push(
    ...allRevivals(status, oldStatus, specOf(old)),
    ...validateTermination(status, oldStatus, specOf(old)),
    ...validateIps(
      (status.podIPs ?? []).map(({ ip }) => ip),
      'status.podIPs',
    ),
    ...validateIps(
      (status.hostIPs ?? []).map(({ ip }) => ip),
      'status.hostIPs',
    ),
  );
  const firstHostIp = status.hostIPs?.[0]?.ip;
  if (firstHostIp !== undefined && firstHostIp !== status.hostIP) {
    errors.push(invalid('status.hostIPs[0].ip', firstHostIp, 'must be equal to `hostIP`'));
  }
  return errors;
}

/** Reports the containers of all lists that have terminated for good according to `old`, but not according to `status`. */
function allRevivals(status: PodStatus, old: PodStatus, spec: PodSpec): FieldError[] {
  const ofPod = spec.restartPolicy ?? 'Always';
  const sidecars = new Set((spec.initContainers ?? []).filter(isSidecar).map(({ name }) => name));
  const persistent = new Set(
    (spec.deferContainers ?? []).filter(({ restartPolicy }) => restartPolicy !== 'Never').map(({ name }) => name),
  );
  const revived = (
    field: 'containerStatuses' | 'initContainerStatuses' | 'deferContainerStatuses' | 'ephemeralContainerStatuses',
    policyOf: (name: string) => string,
  ): FieldError[] => revivals(status[field], old[field], `status.${field}`, policyOf);
  return allErrors(
    revived('containerStatuses', () => ofPod),
    revived('initContainerStatuses', (name) => (sidecars.has(name) ? 'Always' : ofPod)),
    // With restartPolicy Always, a defer container does not run again after its first success, just as with OnFailure.
    revived('deferContainerStatuses', (name) => (persistent.has(name) ? 'OnFailure' : 'Never')),
    revived('ephemeralContainerStatuses', () => 'Never'),
  );
}

function revivals(
  statuses: readonly ContainerStatus[] | undefined,
  old: readonly ContainerStatus[] | undefined,
  path: string,
  policyOf: (name: string) => string,
): FieldError[] {
  const running = new Set(
    (statuses ?? []).filter(({ state }) => state?.terminated === undefined).map(({ name }) => name),
  );
  return (old ?? []).flatMap((before, index) => {
    const ended = before.state?.terminated;
    const policy = policyOf(before.name);
    if (ended === undefined || policy === 'Always' || (ended.exitCode !== 0 && policy === 'OnFailure')) return [];
    return running.has(before.name)
      ? [forbidden(`${path}[${index}].state`, 'may not be transitioned to non-terminated state')]
      : [];
  });
}

function validateIps(ips: readonly string[], path: string): FieldError[] {
  const errors = ips.flatMap((ip, index) => nameErrors(ip, `${path}[${index}]`, ipErrors));
  if (ips.length > 1) {
    const families = ips.map((ip) => ipFamily(ip));
    if (new Set(families).size !== 2 || ips.length > 2) {
      errors.push(
        invalid(
          path,
          ips.map((ip) => ({ ip })),
          'may specify no more than one IP for each IP family',
        ),
      );
    }
    const repeated = repeats(ips);
    ips.forEach((ip, index) => {
      if (repeated[index]) errors.push(duplicate(`${path}[${index}]`, { ip }));
    });
  }
  return errors;
}
