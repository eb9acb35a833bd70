/**
 * An engine for the tests of one file that kill, fill, reconfigure or inspect their engine. Other tests share an engine
 * (shared-engine.ts).
 */
import { afterAll, beforeAll } from 'vitest';
import { type EngineOptions, type Lifepod, startLifepod } from './lifepod.ts';
import { type PodRecord, recordPods } from './pods.ts';

/** The engine of the running file. Undefined before the hook of useOwnEngine() has started it. */
export let lifepod: Lifepod;
/** The recording of all versions of Pods and all Events in the namespace `default` since the engine's start or the last recordAgain(). */
export let record: PodRecord;

/** Starts an engine before the tests of the file, and stops it after them. */
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

/** Records again after a restart of the engine, which may listen on another port. */
export async function recordAgain(): Promise<void> {
  record.end();
  record = await recordPods(lifepod);
}
