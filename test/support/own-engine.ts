/**
 * An engine for the tests of one file that fill, reconfigure or inspect their engine. Other tests share an engine (shared-engine.ts).
 */
import { afterAll, beforeAll } from 'vitest';
import { type EngineOptions, type Lifepod, startLifepod } from './lifepod.ts';
import { type PodRecord, recordPods } from './pods.ts';

/** Undefined before the hook of useOwnEngine() has started it. */
export let lifepod: Lifepod;
/** Records the namespace `default` since the engine's start or the last recordAgain(). */
export let record: PodRecord;

export function useOwnEngine(options: EngineOptions | (() => EngineOptions | Promise<EngineOptions>) = {}): void {
  beforeAll(async () => {
    lifepod = await startLifepod(typeof options === 'function' ? await options() : options);
    record = await recordPods(lifepod);
  });
  afterAll(async () => {
    record?.end();
    await lifepod?.stop();
  });
}

/** Call this after a restart of the engine, because the new engine may listen on another port. */
export async function recordAgain(): Promise<void> {
  record.end();
  record = await recordPods(lifepod);
}
