/** The labels and annotations of a Pod that its sandbox has in the runtime. They are for the runtime's plugins; lifepod does not read them. */
import type { Pod } from '../../api/generated/types.ts';
import type { SandboxConfig } from '../../runtime/runtime.ts';

/** A runtime answers with those of all sandboxes at once: of up to 12,500 Pods that have ended, and of those that run. */
const MAX_BYTES = 8 * 1024;
/** How many more bytes than its texts an entry has in a message. */
const ENTRY_BYTES = 12;
/** kubectl apply keeps the whole manifest in it: nobody misses it where it has no room. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

interface SandboxMetadata {
  shown: Pick<SandboxConfig, 'labels' | 'annotations'>;
  /** The message of an Event; undefined: all of them are shown. */
  cut: string | undefined;
}

const known = new WeakMap<Pod, SandboxMetadata>();

/** Kept with the Pod, whose thousands of containers are all created with it. */
export function sandboxMetadata(pod: Pod): SandboxMetadata {
  const metadata = known.get(pod) ?? boundedMetadata(pod);
  known.set(pod, metadata);
  return metadata;
}

function boundedMetadata({ metadata: { labels = {}, annotations = {} } }: Pod): SandboxMetadata {
  let room = MAX_BYTES;
  let left = 0;
  const fitting = (all: Record<string, string>): Record<string, string> => {
    const fits: [string, string][] = [];
    const keys = Object.keys(all);
    // More than these have no room, whatever they are.
    for (const key of keys.slice(0, MAX_BYTES / ENTRY_BYTES)) {
      const value = all[key] ?? '';
      const bytes = Buffer.byteLength(key) + Buffer.byteLength(value) + ENTRY_BYTES;
      if (bytes > room) continue;
      room -= bytes;
      fits.push([key, value]);
    }
    left += keys.length - fits.length;
    if (all[LAST_APPLIED] !== undefined && !fits.some(([key]) => key === LAST_APPLIED)) left--;
    return Object.fromEntries(fits);
  };
  const shown = { labels: fitting(labels), annotations: fitting(annotations) };
  const cut = `the container runtime gets at most 8 KiB of the labels and annotations: ${left} left out`;
  return { shown, cut: left === 0 ? undefined : cut };
}
