/** Disturbances besides agent crashes: a runtime that is slow, does not respond, or loses or damages containers or records. */
import fc from 'fast-check';
import type { Life, Loss, Outage } from './life.ts';

const millis = fc.constantFrom(20, 500, 5_000, 40_000, 90_000);
const takesEffect = fc.boolean();

export const outage: fc.Arbitrary<Outage> = fc.oneof(
  fc.record({ at: fc.integer({ min: 0, max: 120_000 }), millis, takesEffect }),
  fc.record({
    action: fc.integer({ min: 1, max: 60 }),
    afterMillis: fc.constantFrom(0, 1, 6),
    millis,
    takesEffect,
  }),
);

const loss: fc.Arbitrary<Loss> = fc.record({
  at: fc.integer({ min: 0, max: 120_000 }),
  what: fc.constantFrom('record', 'running', 'damage'),
  names: fc.subarray(['init-1', 'app-1', 'side-1', 'defer-1', 'defer-2'], { minLength: 1 }),
  millis: fc.integer({ min: 1, max: 20_000 }),
});

export const misfortunes: fc.Arbitrary<Pick<Life, 'outages' | 'losses' | 'startMillis'>> = fc.record({
  outages: fc.oneof(
    { weight: 2, arbitrary: fc.constant<Outage[]>([]) },
    { weight: 1, arbitrary: fc.array(outage, { maxLength: 2 }) },
  ),
  losses: fc.oneof(
    { weight: 3, arbitrary: fc.constant<Loss[]>([]) },
    { weight: 1, arbitrary: fc.array(loss, { maxLength: 2 }) },
  ),
  startMillis: fc.constantFrom(5, 5, 250, 3_000),
});
