import { expect, test } from 'vitest';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import type { PodLife } from '../records.ts';
import { livesTable, summaryOf } from './lives.ts';

const UID = '0f8fad5b-d9cb-469f-a165-70867728950e';

/** Returns a life with one step per second, each given as `TYPE`, `TYPE CONTAINER EXITCODE` or `TerminationBegan REASON`. */
function lifeOf(steps: readonly string[], more: Partial<PodLife> = {}): PodLife {
  const transitions = steps.map((text, index) => {
    const [type = '', container, exitCode] = text.split(' ');
    const step = { key: text, at: `2026-01-31T12:00:0${index}.000000Z`, type };
    if (type === 'TerminationBegan') return { ...step, reason: container };
    const ran = container === undefined ? {} : { container, containerKind: 'app', attempt: 0 };
    return { ...step, ...ran, ...(exitCode === undefined ? {} : { exitCode: Number(exitCode) }) };
  });
  const record = { metadata: { name: `${UID}.0` }, podName: 'web', podUID: UID, transitions } as PodRecord;
  return { name: 'web', namespace: 'default', uid: UID, records: steps.length === 0 ? [] : [record], ...more };
}

test.each<[string, string[], string]>([
  [
    'its containers succeeded',
    ['Created', 'Started app', 'TerminationBegan Completed', 'Exited app 0', 'Gone'],
    'Completed, exit 0',
  ],
  [
    'containers failed',
    [
      'Started a',
      'Started b',
      'Started c',
      'TerminationBegan Deleted',
      'Exited a 137',
      'Exited b 0',
      'Exited c 1',
      'Removed',
    ],
    'Deleted, a exit 137, c exit 1',
  ],
  [
    'the end of a container was not seen',
    ['Started app', 'TerminationBegan Evicted', 'Gone'],
    'Evicted, app end unknown',
  ],
  [
    'its node evicted the Pod',
    ['Started app', 'TerminationBegan NodePressure', 'Exited app 137', 'Gone'],
    'Evicted by its node, app exit 137',
  ],
  ['nothing ran', ['Created', 'Gone'], 'Deleted, no app container ran'],
  ['the record has no end', ['Created', 'Started app'], 'its end is not recorded'],
])('the result of a life in which %s', (_, steps, result) => {
  expect(summaryOf(lifeOf(steps)).result).toBe(result);
});

test('the table has the times of each life, and the status of an existing Pod', () => {
  const pod = {
    metadata: { name: 'web', uid: UID, creationTimestamp: '2026-01-31T13:00:00Z' },
    status: { phase: 'Pending' },
  } as Pod;
  const gone = lifeOf(['Created', 'Started app', 'TerminationBegan Completed', 'Exited app 0', 'Gone']);
  expect(livesTable([gone, lifeOf(['Created'], { pod }), lifeOf([])].map(summaryOf)).join('\n')).toMatchInlineSnapshot(`
    "UID       CREATED               ENDED                 RESULT
    0f8fad5b  2026-01-31T12:00:00Z  2026-01-31T12:00:04Z  Completed, exit 0
    0f8fad5b  2026-01-31T13:00:00Z  -                     Pending
    0f8fad5b  unknown               -                     its end is not recorded"
  `);
  expect(summaryOf(gone)).toMatchObject({ uid: UID, ended: '2026-01-31T12:00:04Z' });
});

test('a failed Pod whose containers exited with code 0 is not listed as completed', () => {
  const state = { terminated: { exitCode: 0, reason: 'Completed' } };
  const pod = {
    metadata: { name: 'web', uid: UID },
    spec: { containers: [{ name: 'app', image: 'x' }] },
    status: { phase: 'Failed', reason: 'Terminated', containerStatuses: [{ name: 'app', state }] },
  } as Pod;
  expect(summaryOf(lifeOf([], { pod })).result).toBe('Failed (Terminated)');
});
