import { expect, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { hintsFor } from '../hints.ts';
import { noSteps } from './no-steps.ts';

const REASON = 'SysctlForbidden';

test.each<[string, Partial<NonNullable<Pod['spec']>>, Pod['status'], string]>([
  ['a Pod that is not scheduled', {}, { phase: 'Pending' }, 'it has not reached a node yet'],
  [
    'a Pod that its node rejected',
    { nodeName: 'node-1' },
    { phase: 'Failed', reason: REASON, message: 'Pod was rejected: no' },
    'its node node-1 rejected it (SysctlForbidden), so that none of its containers ran',
  ],
])('without any step, the timeline describes %s', (_, spec, status, what) => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'n' },
    spec: { containers: [], ...spec },
    status,
  };
  const life = { name: 'p', namespace: 'n', uid: 'abcdef01-2345', pod, records: [] };
  expect(noSteps(life, hintsFor({}, {}))).toBe(`p (n, UID abcdef01): ${what}; 'lifepod why p -n n' shows why`);
});
