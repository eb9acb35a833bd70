/** Images of containers, and what is told of their pulls. Reasons and messages are the kubelet's (v1.33); upstream says nothing of their progress. */
import type { Failure } from './types.ts';

/** What is known of the image of a container's next run. */
export type ImageState = { attempt: number; image: string } & (
  | { state: 'present'; imageId: string; pulled?: { millis: number; withWaitingMillis?: number; sizeBytes: number } }
  | { state: 'absent' }
);

/** Of a pull that takes its time. waiting: for other pulls of the node. Bytes: as far as the runtime tells. */
export type PullProgress = { state: 'waiting' } | { state: 'pulling'; doneBytes?: number; totalBytes?: number };

/** The name or the node's own look was refused: nothing was asked of a registry, and there is no back-off of a pull. */
export const isBeforePull = ({ reason }: Failure): boolean =>
  reason === 'InvalidImageName' || reason === 'ImageInspectError';

/** Of the waiting container; undefined while there is nothing to tell. */
export function pullMessage(image: string, progress: PullProgress | undefined): string | undefined {
  if (progress === undefined) return undefined;
  const name = JSON.stringify(image);
  if (progress.state === 'waiting') return `Waiting for other pulls before image ${name}`;
  const { doneBytes, totalBytes } = progress;
  if (doneBytes === undefined || totalBytes === undefined || totalBytes === 0) return `Pulling image ${name}`;
  return `Pulling image ${name}: ${percent(doneBytes, totalBytes)}% of ${binarySize(totalBytes)}`;
}

/** The quarters that are done: each is worth an Event. */
export const quartersDone = (progress: PullProgress | undefined): number =>
  progress?.state !== 'pulling' || progress.totalBytes === undefined || progress.totalBytes === 0
    ? 0
    : Math.floor(percent(progress.doneBytes ?? 0, progress.totalBytes) / 25);

const percent = (done: number, total: number): number => Math.min(100, Math.floor((done * 100) / total));

/** 120 MiB, 1.5 GiB */
export function binarySize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, unit] = [bytes, 0];
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
