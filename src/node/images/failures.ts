/** Source: pkg/kubelet/images of v1.33 (reasons and wording). */
import { referenceError } from '../../runtime/images/references.ts';
import { ActionError } from '../pod/action-error.ts';

/** Throws an ActionError InvalidImageName if the reference is malformed. */
export function checkImageName(reference: string): void {
  const message = invalidNameMessage(reference);
  if (message !== undefined) throw new ActionError('InvalidImageName', message);
}

/** Returns undefined if the reference is well formed. */
export function invalidNameMessage(reference: string): string | undefined {
  const why = referenceError(reference);
  return why === undefined
    ? undefined
    : `Failed to apply default image tag "${reference}": couldn't parse image name "${reference}": ${why}`;
}

/** The runtime's message begins with the reason. The second text is the cause to report. Source: k8s.io/cri-api, pkg/errors. */
const MARKED_FAILURES = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
] as const;

/** `why`: the runtime's message. */
export function pullFailure(reference: string, why: string): ActionError {
  const words = why.replace(/^rpc error: code = \w+ desc = /, '');
  for (const [reason, cause] of MARKED_FAILURES) {
    if (!words.startsWith(reason)) continue;
    const rest = words.slice(reason.length);
    return new ActionError(reason, `image pull failed for ${reference} because ${cause}${rest}`);
  }
  return new ActionError('ErrImagePull', why);
}
