import { expect, it } from 'vitest';
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import { strategyFor } from '../../api/patch-strategy.ts';
import { applyPatch } from '../../machinery/patch/patch.ts';
import { statusPatch } from './status-patch.ts';

const at = '2026-01-01T00:00:00Z';
const pod = (status: PodStatus): Pod => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, status });
/** Returns the stored status after a node that last saw the status `known` has written `status`. */
const written = (status: PodStatus, known: PodStatus, stored = known): unknown => {
  // As in a request, drop undefined fields.
  const body = JSON.parse(JSON.stringify({ status: statusPatch(pod(known), status) }));
  const type = 'application/strategic-merge-patch+json';
  return (applyPatch(type, pod(stored) as never, body, strategyFor('io.k8s.api.core.v1.Pod')) as unknown as Pod).status;
};

it('a status patch removes the reason and message of a condition that no longer has them', () => {
  const ready = { type: 'Ready', status: 'True', lastTransitionTime: at };
  const unready = { ...ready, status: 'False', reason: 'ContainersNotReady', message: 'not yet' };
  expect(written({ conditions: [ready] }, { conditions: [unready] })).toEqual({ conditions: [ready] });
});

it('a status patch keeps concurrent changes of conditions that other components own', () => {
  const gate = { type: 'example.com/gate', status: 'False' };
  const opened = { ...gate, status: 'True' };
  const ready = { type: 'Ready', status: 'False', lastTransitionTime: at };
  const stored = { conditions: [opened, ready] };
  expect(written({ conditions: [{ ...ready, status: 'True' }, gate] }, { conditions: [gate, ready] }, stored)).toEqual({
    conditions: expect.arrayContaining([opened, { ...ready, status: 'True' }]),
  });
});

it('a status patch replaces addresses, and removes fields that the node no longer sets', () => {
  expect(
    written(
      { phase: 'Running', podIPs: [{ ip: '10.0.0.2' }] },
      { phase: 'Pending', reason: 'Why', podIPs: [{ ip: '10.0.0.1' }] },
    ),
  ).toEqual({ phase: 'Running', podIPs: [{ ip: '10.0.0.2' }] });
});
