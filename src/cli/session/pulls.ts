/** Reports the images that the node pulls for the Pods of a session, from the statuses of their containers. */
import { type ReportedPull, reportedPull } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { Pod } from '../../api/generated/types.ts';
import { lacksImage, podContainers } from '../pod-containers.ts';
import type { TerminalLine } from '../progress/terminal-line.ts';

export function pullsOf(pods: readonly Pod[]): Map<string, ReportedPull> {
  const pulls = pods.flatMap((pod) =>
    podContainers(pod).flatMap(({ status }) => reportedPull(status?.state?.waiting?.message) ?? []),
  );
  return new Map(pulls.map((pull) => [pull.image, pull]));
}

const isPulled = (image: string, pods: readonly Pod[]): boolean =>
  pods.some((pod) => {
    const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
    return podContainers(pod).some(
      ({ name, status }) =>
        status?.imageID !== undefined &&
        status.imageID !== '' &&
        // While the image is missing, the imageID may be that of the last run, which had another image.
        !lacksImage(status) &&
        containers.some((each) => each.name === name && each.image === image),
    );
  });

/**
 * Returns a function to call with the Pods of the session after each change. On a terminal, the function rewrites the line with the
 * progress of all pulls. Otherwise it calls `say` when a pull is first reported, and when the image has been pulled.
 */
export function createPullReports(
  line: Pick<TerminalLine, 'isShown' | 'show'>,
  say: (line: string) => void,
): (pods: readonly Pod[]) => void {
  const said = new Set<string>();
  return (pods) => {
    const pulls = pullsOf(pods);
    if (line.isShown) {
      const texts = [...pulls.values()].map(({ image, progress }) => [image, ...progress].join(': '));
      line.show(texts.length === 0 ? '' : `pulling ${texts.join(', ')}`);
      return;
    }
    for (const image of pulls.keys()) {
      if (!said.has(image)) say(`pulling ${image}`);
      said.add(image);
    }
    for (const image of [...said].filter((each) => !pulls.has(each) && isPulled(each, pods))) {
      say(`pulled ${image}`);
      said.delete(image);
    }
  };
}
