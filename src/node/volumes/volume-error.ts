import type { Timer, Timers } from '../../platform/platform.ts';

/**
 * The failed setup of a volume, or a problem that does not prevent the setup. Users see the reason and the message in an Event or in the
 * status of the containers.
 */
export class VolumeError extends Error {
  override readonly name = 'VolumeError';
  /**
   * FailedMount; the waiting reason of the containers if an image is not available; or AlreadyMountedVolume if other Pods use the volume
   * and the group of its files is not the Pod's fsGroup.
   */
  readonly reason: string;
  declare readonly image?: string;
  readonly volume: string;
  /**
   * With the reason FailedMount, `cause` becomes a part of the message, otherwise it is the whole message. `image`: the image that could
   * not be pulled. `step`: upstream's name of the failed step.
   */
  constructor(volumeName: string, cause: string, reason = 'FailedMount', image?: string, step = 'MountVolume.SetUp') {
    super(reason === 'FailedMount' ? `${step} failed for volume ${JSON.stringify(volumeName)} : ${cause}` : cause);
    this.reason = reason;
    this.volume = volumeName;
    if (image !== undefined) this.image = image;
  }
}

const REPORT_AFTER_MILLIS = 1000;

/** Reports failures REPORT_AFTER_MILLIS after the first one, since end() may come much later, for example after a pull. */
export function createFailures(
  report: (error: VolumeError) => void,
  timers: Timers,
): { add(error: VolumeError): VolumeError; end(rejections: readonly unknown[]): unknown } {
  const unreported = new Set<VolumeError>();
  let timer: Timer | undefined;
  const reportAll = (): void => {
    timer?.cancel();
    timer = undefined;
    for (const error of unreported) report(error);
    unreported.clear();
  };
  return {
    add(error) {
      unreported.add(error);
      timer ??= timers.at(timers.now() + REPORT_AFTER_MILLIS, reportAll);
      return error;
    },
    /**
     * Called when all volumes are done. Returns the rejection that the caller must report, preferably an unreported one. Reports the other
     * unreported failures.
     */
    end(rejections) {
      const own = rejections.find((error) => unreported.has(error as VolumeError)) ?? rejections[0];
      unreported.delete(own as VolumeError);
      reportAll();
      return own;
    },
  };
}
