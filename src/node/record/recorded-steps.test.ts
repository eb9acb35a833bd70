import { describe, expect, it } from 'vitest';
import { createRecordedSteps } from './recorded-steps.ts';

describe('fresh', () => {
  const probe = { key: 'Probe/liveness/app/0@1', at: 1, type: 'ProbePassing' };
  it('fresh() drops a step whose key is already recorded', () => {
    const recorded = createRecordedSteps();
    const step = { key: 'Created', at: 1, type: 'Created' };
    expect([recorded.fresh([step]), recorded.fresh([{ ...step, at: 2 }])]).toEqual([[step], []]);
  });
  it('fresh() drops a result that equals the previous one of its subject', () => {
    const next = { ...probe, key: 'Probe/liveness/app/0@2', at: 2 };
    expect(createRecordedSteps().fresh([probe, next])).toEqual([probe]);
    expect(createRecordedSteps().fresh([probe, { ...next, type: 'ProbeFailing' }])).toHaveLength(2);
    expect(createRecordedSteps().fresh([probe, { ...next, key: 'Probe/liveness/app/1@2' }])).toHaveLength(2);
  });
  it('fresh() keeps each pull of an image with a digest, although the digest follows an @', () => {
    const pulling = (at: number) => ({
      key: `pullImage/example.com/a@sha256:1/app/0/Pulling/${at}`,
      at,
      type: 'Pulling',
    });
    expect(createRecordedSteps().fresh([pulling(0), pulling(5)])).toEqual([pulling(0), pulling(5)]);
  });
  it('fresh() remembers the first steps of a Pod however many probe results followed', () => {
    const recorded = createRecordedSteps();
    const started = { key: 'Started/app/0', at: 0, type: 'Started' };
    recorded.fresh([started]);
    const type = (at: number): string => (at % 2 === 0 ? 'ProbePassing' : 'ProbeFailing');
    const results = Array.from({ length: 20_000 }, (_, at) => ({
      ...probe,
      type: type(at),
      key: `Probe/liveness/app/0@${at}`,
    }));
    expect(recorded.fresh(results)).toHaveLength(20_000);
    expect(recorded.fresh([started, ...results.slice(-10_000)])).toEqual([]);
  });
  it('fresh() remembers the last result of each of 1000 probes', () => {
    const recorded = createRecordedSteps();
    const steps = (at: number) =>
      Array.from({ length: 1001 }, (_, index) => ({ ...probe, key: `Probe/liveness/app/${index}@${at}` }));
    recorded.fresh(steps(1));
    expect(recorded.fresh(steps(2).slice(1))).toEqual([]);
    expect(recorded.fresh(steps(2).slice(0, 1))).toHaveLength(1);
  });
});
