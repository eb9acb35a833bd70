/** The progress of an image pull, as the status of the waiting container and Events report it. Upstream reports no progress. */
import { binarySize } from '../../../../../machinery/binary-size.ts';

/** A pull that has not completed. `waiting`: the pull waits for other pulls of the node. The bytes are absent if they are not known. */
export type PullProgress = { state: 'waiting' } | { state: 'pulling'; doneBytes?: number; totalBytes?: number };

/** The message in the state of the waiting container; undefined if `progress` is undefined. */
export function pullMessage(image: string, progress: PullProgress | undefined): string | undefined {
  if (progress === undefined) return undefined;
  const name = JSON.stringify(image);
  if (progress.state === 'waiting') return `Waiting for other pulls before image ${name}`;
  const done = percentDone(progress);
  return `Pulling image ${name}${done === undefined ? '' : `: ${done}% of ${binarySize(progress.totalBytes ?? 0)}`}`;
}

export interface ReportedPull {
  image: string;
  /** A text such as `45% of 120 MiB`; an empty list if the progress is not known. */
  progress: [] | [string];
}

/** Returns the pull that a message of pullMessage() reports; undefined for other messages, and for pulls that wait for others. */
export function reportedPull(message = ''): ReportedPull | undefined {
  const [, name = '', progress] = /^Pulling image ("(?:[^"\\]|\\.)*")(?:: (.+))?$/.exec(message) ?? [];
  if (name === '') return undefined;
  return { image: JSON.parse(name) as string, progress: progress === undefined ? [] : [progress] };
}

/** The number of completed quarters of the pull, from 0 to 4; 0 if the progress is unknown. */
export const quartersDone = (progress?: PullProgress): number => Math.floor((percentDone(progress) ?? 0) / 25);

function percentDone(progress?: PullProgress): number | undefined {
  if (progress?.state !== 'pulling' || progress.doneBytes === undefined || !progress.totalBytes) return undefined;
  return Math.min(100, Math.floor((progress.doneBytes * 100) / progress.totalBytes));
}
