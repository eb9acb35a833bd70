import { expect, test } from 'vitest';
import { NeedsRootError } from '../../engine/machine-checks.ts';
import { UserError } from '../../platform/files.ts';
import { makeImages } from './make-image.ts';

const failing = (failure: (archive: string) => Error): Promise<unknown> =>
  makeImages('/nonexistent', ['busybox:1.28'], (_, [archive = '']) => Promise.reject(failure(archive))).then(
    () => undefined,
    (error: unknown) => error,
  );

test('an error about the archive names the images instead of the temporary file', async () => {
  const error = await failing((archive) => new UserError(`the archive ${archive} is damaged`));
  expect(error).toEqual(new UserError('the archive of busybox:1.28 is damaged'));
});

test('the error of a user who is not root remains, so that failureText() composes the command to type', async () => {
  const needsRoot = new NeedsRootError();
  expect(await failing(() => needsRoot)).toBe(needsRoot);
});
