/** The progress of an image pull, for the waiting container and Events. Upstream reports no progress. */
import { binarySize } from '../../../../../machinery/binary-size.ts';

/** An ongoing pull. waiting: queued behind other pulls of the node. The byte counts are set if the runtime reports them. */
export type PullProgress = { state: 'waiting' } | { state: 'pulling'; doneBytes?: number; totalBytes?: number };

/** The message of the waiting container; undefined while there is nothing to report. */
export function pullMessage(image: string, progress: PullProgress | undefined): string | undefined {
  if (progress === undefined) return undefined;
  const name = JSON.stringify(image);
  if (progress.state === 'waiting') return `Waiting for other pulls before image ${name}`;
  const done = percentDone(progress);
  return `Pulling image ${name}${done === undefined ? '' : `: ${done}% of ${binarySize(progress.totalBytes ?? 0)}`}`;
}

/** The number of completed quarters; each is reported as an Event. */
export const quartersDone = (progress?: PullProgress): number => Math.floor((percentDone(progress) ?? 0) / 25);

function percentDone(progress?: PullProgress): number | undefined {
  if (progress?.state !== 'pulling' || progress.doneBytes === undefined || !progress.totalBytes) return undefined;
  return Math.min(100, Math.floor((progress.doneBytes * 100) / progress.totalBytes));
}
