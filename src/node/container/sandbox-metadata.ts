import type { Pod } from '../../api/generated/types.ts';
import type { SandboxConfig } from '../../runtime/runtime.ts';

/**
 * This limit for one sandbox bounds the size of the runtime's responses, which contain all sandboxes. By default, these include the
 * sandboxes of up to 12,500 ended Pods.
 */
const MAX_BYTES = 8 * 1024;
/** An upper bound for the overhead of a label or annotation in a CRI message. */
const ENTRY_BYTES = 12;
/** kubectl apply stores the whole manifest here. The runtime does not need it, so its omission is not reported. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

interface SandboxMetadata {
  shown: Pick<SandboxConfig, 'labels' | 'annotations'>;
  /** The message of an Event; undefined if nothing relevant was omitted. */
  cut: string | undefined;
}

const known = new WeakMap<Pod, SandboxMetadata>();

/** Returns the labels and annotations for the runtime's plugins. The result is cached, since each creation of a container needs it. */
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
    // Bound the work: no more entries than this fit, even if they are empty.
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
  const cut = `the container runtime gets at most 8 KiB of the labels and annotations: ${left} omitted`;
  return { shown, cut: left === 0 ? undefined : cut };
}
