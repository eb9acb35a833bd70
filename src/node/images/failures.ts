/** Creates the errors for images that cannot be pulled. Source: pkg/kubelet/images of v1.33 (reasons and wording). */
import { referenceError } from '../../runtime/images/references.ts';
import { ActionError } from '../pod/action-error.ts';

/** Throws an ActionError InvalidImageName if the reference is malformed. */
export function checkImageName(reference: string): void {
  const why = referenceError(reference);
  if (why === undefined) return;
  throw new ActionError(
    'InvalidImageName',
    `Failed to apply default image tag "${reference}": couldn't parse image name "${reference}": ${why}`,
  );
}

/**
 * The failures that have their own reason, each with two texts: the reason, with which the runtime's message begins, and the cause
 * to report.
 * Source: k8s.io/cri-api, pkg/errors.
 */
const MARKED_FAILURES = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
] as const;

/**
 * Returns the error for a failed pull. `why`: the runtime's message. The error's reason is the reason in MARKED_FAILURES with which the
 * message begins after its gRPC prefix, or else ErrImagePull.
 */
export function pullFailure(reference: string, why: string): ActionError {
  const words = why.replace(/^rpc error: code = \w+ desc = /, '');
  for (const [reason, cause] of MARKED_FAILURES) {
    if (!words.startsWith(reason)) continue;
    const rest = words.slice(reason.length);
    return new ActionError(reason, `image pull failed for ${reference} because ${cause}${rest}`);
  }
  return new ActionError('ErrImagePull', why);
}
