import type { Timer, Timers } from '../../platform/platform.ts';

/** A volume cannot be made as things are; trying later may succeed. Reason and message are those that the user sees. */
export class VolumeError extends Error {
  override readonly name = 'VolumeError';
  /** FailedMount, or of an image that cannot be had what the waiting containers show. */
  readonly reason: string;
  declare readonly image?: string;
  /** `cause`: where the reason is another than FailedMount, the whole message. `image`: one that could not be pulled. */
  constructor(volumeName: string, cause: string, reason = 'FailedMount', image?: string, step = 'MountVolume.SetUp') {
    super(reason === 'FailedMount' ? `${step} failed for volume ${JSON.stringify(volumeName)} : ${cause}` : cause);
    this.reason = reason;
    if (image !== undefined) this.image = image;
  }
}

/** A failure is told so long after it, unless all volumes are done by then: then whoever waits for them is told of it. */
const TOLD_AFTER_MILLIS = 1000;

/** What fails of the volumes of one Pod: `tell` hears of it while others take their time, such as the pull of an image. */
export function createFailures(
  tell: (error: VolumeError) => void,
  timers: Timers,
): { add(error: VolumeError): VolumeError; end(rejections: readonly unknown[]): unknown } {
  const untold = new Set<unknown>();
  let timer: Timer | undefined;
  const tellAll = (): void => {
    timer?.cancel();
    timer = undefined;
    for (const error of untold) if (error instanceof VolumeError) tell(error);
    untold.clear();
  };
  return {
    add(error) {
      untold.add(error);
      timer ??= timers.at(timers.now() + TOLD_AFTER_MILLIS, tellAll);
      return error;
    },
    /** All volumes are done. Returns the rejection that is for the caller to tell: one that nobody has heard of, if there is one. */
    end(rejections) {
      const left = rejections.find((error) => untold.has(error)) ?? rejections[0];
      untold.delete(left);
      tellAll();
      return left;
    },
  };
}
