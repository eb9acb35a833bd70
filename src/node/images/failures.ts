/** How it is told that an image cannot be had. Source: pkg/kubelet/images of v1.33 (reasons and wording). */
import { referenceError } from '../../runtime/images/references.ts';
import { ActionError } from '../pod/action-error.ts';

/** Throws InvalidImageName where no runtime can take the reference. */
export function checkImageName(reference: string): void {
  const why = referenceError(reference);
  if (why === undefined) return;
  throw new ActionError(
    'InvalidImageName',
    `Failed to apply default image tag "${reference}": couldn't parse image name "${reference}": ${why}`,
  );
}

/** What a runtime begins its reason with to tell these from the rest. Source: k8s.io/cri-api, pkg/errors. */
const TOLD_APART = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
] as const;

/** `why`: the runtime's words. */
export function pullFailure(reference: string, why: string): ActionError {
  const words = why.replace(/^rpc error: code = \w+ desc = /, '');
  for (const [reason, cause] of TOLD_APART) {
    if (!words.startsWith(reason)) continue;
    const rest = words.slice(reason.length);
    return new ActionError(reason, `image pull failed for ${reference} because ${cause}${rest}`);
  }
  return new ActionError('ErrImagePull', why);
}
