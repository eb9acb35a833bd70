/** A life that is recorded as text, so that changes of the behavior can be read. */
import type { RunScript } from '../../runtime/simulated/simulated-runtime.ts';
import type { Life } from '../life.ts';

export interface LifeToRead {
  /** The Pod and what happens to it, for readers of the file. */
  about: string;
  life: Life;
}

export const forever: RunScript[] = [{ stopMillis: 100 }];
/** Ignores its stop signal. */
export const stubborn: RunScript[] = [{}];
export const once = (runMillis: number, exitCode = 0): RunScript[] => [{ runMillis, exitCode }];
export const check = { exec: { command: ['check'] } };
