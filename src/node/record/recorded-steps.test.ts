import { describe, expect, it } from 'vitest';
import { createTold } from './recorded-steps.ts';

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
  it('knows the first steps of a Pod however often its probe has changed since', () => {
    const told = createTold();
    const started = { key: 'Started/app/0', at: 0, type: 'Started' };
    told.fresh([started]);
    const type = (at: number): string => (at % 2 === 0 ? 'ProbePassing' : 'ProbeFailing');
    const results = Array.from({ length: 20_000 }, (_, at) => ({
      ...{ ...probe, type: type(at) },
      key: `Probe/liveness/app/0@${at}`,
    }));
    expect(told.fresh(results)).toHaveLength(20_000);
    expect(told.fresh([started, ...results.slice(-10_000)])).toEqual([]);
  });
  it('knows what the last step of each of 1000 probes said', () => {
    const told = createTold();
    const steps = (at: number) =>
      Array.from({ length: 1001 }, (_, index) => ({ ...probe, key: `Probe/liveness/app/${index}@${at}` }));
    told.fresh(steps(1));
    expect(told.fresh(steps(2).slice(1))).toEqual([]);
    expect(told.fresh(steps(2).slice(0, 1))).toHaveLength(1);
  });
});
