/** A life whose steps are recorded as text, so that a change of the behavior shows as a change of the text. */
import type { RunScript } from '../../runtime/simulated/simulated-runtime.ts';
import type { Life } from '../life.ts';

export interface LifeToRead {
  /** Describes the Pod and the events of its life, for readers of the .life file. */
  about: string;
  life: Life;
}

export const forever: RunScript[] = [{ stopMillis: 100 }];
/** A container that ignores its stop signal and runs until it is killed. */
export const stubborn: RunScript[] = [{}];
export const once = (runMillis: number, exitCode = 0): RunScript[] => [{ runMillis, exitCode }];
export const check = { exec: { command: ['check'] } };
