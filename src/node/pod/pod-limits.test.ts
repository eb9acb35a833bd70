import { expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import { ActionError } from './action-error.ts';
import { createPodLimits } from './pod-limits.ts';

const pod = podOf();

test('the limits of a Pod are written for each sandbox, and otherwise once until they are forgotten', async () => {
  let writes = 0;
  const limits = createPodLimits({ create: async () => void writes++ });
  expect(limits.isWritten('u1')).toBe(false);
  await Promise.all([limits.ensure(pod), limits.ensure(pod)]);
  expect([writes, limits.isWritten('u1')]).toEqual([1, true]);
  await limits.write(pod);
  expect(writes).toBe(2);
  limits.forget('u1');
  expect(limits.isWritten('u1')).toBe(false);
  await limits.ensure(pod);
  expect(writes).toBe(3);
});

test('limits that cannot be written are an error of the Pod, and are written again by the next action', async () => {
  let failing = true;
  const limits = createPodLimits({
    async create() {
      if (failing) throw new Error('read-only');
    },
  });
  const failed = limits.ensure(pod);
  await expect(failed).rejects.toThrow(
    'failed to ensure that the pod: u1 cgroups exist and are correctly applied: read-only',
  );
  await expect(failed).rejects.toMatchObject({ reason: 'CreateContainerError' });
  await expect(failed).rejects.toBeInstanceOf(ActionError);
  expect(limits.isWritten('u1')).toBe(false);
  failing = false;
  await limits.ensure(pod);
  expect(limits.isWritten('u1')).toBe(true);
  await createPodLimits(undefined).write(pod);
});
