import { describe, expect, it } from 'vitest';
import { createTold } from './told.ts';

describe('fresh', () => {
  const probe = { key: 'Probe/liveness/app/0@1', at: 1, type: 'ProbePassing' };
  it('drops a step whose key was given before', () => {
    const told = createTold();
    const step = { key: 'Created', at: 1, type: 'Created' };
    expect([told.fresh([step]), told.fresh([{ ...step, at: 2 }])]).toEqual([[step], []]);
  });
  it('drops a step that says of its subject what the last one said', () => {
    const next = { ...probe, key: 'Probe/liveness/app/0@2', at: 2 };
    expect(createTold().fresh([probe, next])).toEqual([probe]);
    expect(createTold().fresh([probe, { ...next, type: 'ProbeFailing' }])).toHaveLength(2);
    expect(createTold().fresh([probe, { ...next, key: 'Probe/liveness/app/1@2' }])).toHaveLength(2);
  });
});
