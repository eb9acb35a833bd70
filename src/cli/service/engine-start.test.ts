import { expect, test } from 'vitest';
import type { Node } from '../../api/generated/types.ts';
import { formatTime } from '../../machinery/time.ts';
import { unreportedNode } from './engine-start.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const startedAt = NOW - 12_000;

const nodeOf = (reportedAt: number): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: formatTime(reportedAt) }] },
});

test.each<[string, number, string | undefined, boolean]>([
  ['that reported before the engine started has not reported since', startedAt - 60_000, 'n', true],
  ['whose name the user may not read counts as that of the engine', startedAt - 60_000, undefined, true],
  ['that reported in the second of the start has reported', startedAt, 'n', false],
  ['that reported after the start has reported', startedAt + 5000, 'n', false],
  ['that belongs to another engine may have reported', startedAt - 60_000, 'other', false],
])('a node %s', (_, reportedAt, nodeName, isUnreported) => {
  const found = unreportedNode(nodeOf(reportedAt), { nodeName, startedAt, now: NOW });
  expect(found).toEqual(isUnreported ? { reportedAt, startedAt } : undefined);
});

test('a node of an engine that has run for a minute has reported, also if the clock of the machine was set forward since', () => {
  const reportedAt = NOW - 3_600_000;
  const found = (age: number) => unreportedNode(nodeOf(reportedAt), { nodeName: 'n', startedAt: NOW - age, now: NOW });
  expect(found(59_000)).toBeDefined();
  expect(found(60_000)).toBeUndefined();
});
