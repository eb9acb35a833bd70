import { expect, test } from 'vitest';
import { checkImageName, pullFailure } from './failures.ts';

const REFUSED = 'rpc error: code = NotFound desc = failed to pull and unpack image "a:1": not found';

test.each([
  [REFUSED, 'ErrImagePull', REFUSED],
  [
    'rpc error: code = Unknown desc = RegistryUnavailable: it is asleep',
    'RegistryUnavailable',
    'image pull failed for a:1 because the registry is unavailable: it is asleep',
  ],
  ['RegistryUnavailable', 'RegistryUnavailable', 'image pull failed for a:1 because the registry is unavailable'],
  [
    'rpc error: code = Unknown desc = SignatureValidationFailed: no signature',
    'SignatureValidationFailed',
    'image pull failed for a:1 because the signature validation failed: no signature',
  ],
])('pullFailure reports "%s" as %s', (words, reason, message) => {
  expect(pullFailure('a:1', words)).toMatchObject({ reason, message });
});

test('checkImageName reports an invalid image name as InvalidImageName', () => {
  expect(() => checkImageName('a:1')).not.toThrow();
  expect(() => checkImageName('a b')).toThrow(
    `Failed to apply default image tag "a b": couldn't parse image name "a b": invalid reference format`,
  );
});
