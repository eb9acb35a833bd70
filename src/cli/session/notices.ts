/** Composes the lines of a session about its Pods. Prints each line once for each Pod, because a container may fail again and again. */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Hints } from '../hints.ts';
import { imageOf, lacksImage, podContainers, wantedImage } from '../pod-containers.ts';
import { endOfEntry, endText, isMissed, remainingWork, withoutImage } from '../why/entries.ts';
import { actionsText, imageHint, lackOfImage } from '../why/images.ts';

/** A line about a defer container. */
interface EntryNotice {
  /** The name of the defer container. */
  name: string;
  text: string;
  /** The advice to the user; empty if no remedy is known. */
  hint: string;
  /** Whether the entry may still run. */
  isPending: boolean;
}

/** Returns lines about defer containers that cannot get their images, and about defer containers that were due and did not run. Pure. */
export function entryNotices(pod: Pod, hints: Hints, node: Node | undefined): EntryNotice[] {
  const advised = { pod, hints, node };
  const title = `pod/${pod.metadata.name}`;
  const waited = new Set(
    podContainers(pod)
      .filter(({ kind, status }) => kind !== 'defer' && status !== undefined && lacksImage(status))
      .map((each) => wantedImage(pod, each).reference),
  );
  return podContainers(pod).flatMap(({ kind, name, status }): EntryNotice[] => {
    if (kind !== 'defer' || status === undefined) return [];
    const image = `the image ${imageOf(pod, { name })}`;
    if (lacksImage(status) && !hasEnded(pod)) {
      // Another container cannot start without the same image. The session reports that container instead.
      if (waited.has(imageOf(pod, { name }))) return [];
      const text = `${title}: ${image} of its defer container ${name} ${lackOfImage(status)}`;
      return [{ name, text, hint: imageHint(advised, { kind, name, status }), isPending: true }];
    }
    const end = endOfEntry(status, []);
    if (end === undefined || !isMissed(end)) return [];
    const lacking = withoutImage(end);
    const how = lacking === undefined ? endText(end) : `could not start: ${image} ${lackOfImage(lacking.status)}`;
    const [byHand, ...ofImage] = remainingWork(advised, [end]);
    const text = `${title}: defer container ${name} ${how}; ${byHand?.description}`;
    return [{ name, text, hint: actionsText(ofImage), isPending: false }];
  });
}

export interface Notices {
  /** Prints `text`, which says why a Pod waits or fails, unless it has already printed a text with the same `cause` for this Pod. */
  trouble(pod: Pod, cause: string, text: string): void;
  /** Prints which defer containers of the Pod cannot get their images, or were due and did not run. */
  entries(pod: Pod, node: Node | undefined): void;
}

/** Returns notices that print their lines with `say`. */
export function createNotices(say: (line: string) => void, hints: Hints): Notices {
  /** The causes of the lines that were printed, each with the UID of its Pod. */
  const said = new Set<string>();
  const isNew = (pod: Pod, cause: string): boolean => {
    const key = `${uidOf(pod)} ${cause}`;
    const isFirst = !said.has(key);
    said.add(key);
    return isFirst;
  };
  // The command is for another terminal, because the session occupies this one.
  const see = ({ metadata: { name, namespace } }: Pod): string =>
    `see '${hints.lifepod(`why ${name} -n ${namespace}`)}' in another terminal`;
  return {
    trouble(pod, cause, text) {
      if (isNew(pod, cause)) say(`${text}; ${see(pod)}`);
    },
    entries(pod, node) {
      for (const { name, text, hint, isPending } of entryNotices(pod, hints, node)) {
        // The text in parentheses, such as the reason of a failed pull, may differ each time.
        if (!isNew(pod, isPending ? text.replace(/ \(.*$/s, '') : text)) continue;
        // The line about the missing image may already have contained the hint.
        const advice = hint !== '' && isNew(pod, `hint for ${name}`) ? `; ${hint}` : '';
        say(`${text}${advice}${isPending ? `; ${see(pod)}` : ''}`);
      }
    },
  };
}
