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
  it('knows the last 10,000 steps of a long life, and no older ones', () => {
    const told = createTold();
    const steps = Array.from({ length: 10_001 }, (_, index) => ({
      key: `Started/app/${index}`,
      at: index,
      type: 'Started',
    }));
    expect(told.fresh(steps)).toEqual(steps);
    expect(told.fresh(steps.slice(1))).toEqual([]);
    expect(told.fresh(steps.slice(0, 1))).toEqual(steps.slice(0, 1));
  });
  it('knows of the last 1000 subjects what was said of them', () => {
    const told = createTold();
    const steps = (at: number) =>
      Array.from({ length: 1001 }, (_, index) => ({ ...probe, key: `Probe/liveness/app/${index}@${at}` }));
    told.fresh(steps(1));
    expect(told.fresh(steps(2).slice(1))).toEqual([]);
    expect(told.fresh(steps(2).slice(0, 1))).toHaveLength(1);
  });
});
