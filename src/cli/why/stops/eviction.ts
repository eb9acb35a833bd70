/** Explains, from its message, why a node evicted a Pod. Pure. Source: src/node/eviction/ranking.ts (the messages). */
import { firstSentence } from '../../timeline/termination-end.ts';
import { listed } from '../subject.ts';

export interface Eviction {
  /** A clause in the past tense, such as `its node evicted it, because the node was low on memory`. */
  cause: string;
  evidence: string[];
  /** What would have prevented the eviction, a verb phrase; undefined if the Pod exceeded no limit of its own. */
  remedy?: string;
}

/** Explains the message of an eviction. `limited`: the containers with a limit for the disk; empty if they are not known. */
export function evictionOf(message: string, limited: readonly string[]): Eviction {
  const [, volume, size] = /EmptyDir volume "(.+)" exceeds the limit "(.+)"/.exec(message) ?? [];
  if (volume !== undefined)
    return {
      cause: `its node evicted it, because its volume ${volume} exceeded its sizeLimit of ${size}`,
      evidence: [],
      remedy: `raise the sizeLimit of the volume ${volume}, or write less to it`,
    };
  const [, container, own] = /Container (\S+) exceeded its local ephemeral storage limit "(.+)"/.exec(message) ?? [];
  const [, total] = /exceeds the total limit of containers (\S+?)\.?$/.exec(message) ?? [];
  if (container !== undefined || total !== undefined) return diskLimit(container, own ?? total, limited);
  const [, resource] = /^The node was low on (?:resource: )?(.+?)\.(?: |$)/.exec(message) ?? [];
  const why = resource === undefined ? lowered(firstSentence(message)) : `because the node was low on ${resource}`;
  return { cause: `its node evicted it${why && `, ${why}`}`, evidence: [] };
}

/**
 * Explains an eviction because of a limit for the disk. `container`: the one that exceeded its limit; undefined if the containers together
 * exceeded the sum of their limits.
 */
function diskLimit(container: string | undefined, amount = '', limited: readonly string[]): Eviction {
  const names = container === undefined ? limited : [container];
  const suffix = names.length === 1 ? '' : 's';
  const limits = `ephemeral-storage limit${suffix} of its container${suffix}${names.length === 0 ? '' : ` ${listed(names)}`}`;
  return {
    cause: `its node evicted it, because it wrote more to the disk than the ${limits}, ${amount}${suffix && ' in total'}`,
    evidence: [
      container === undefined
        ? `the limit${suffix} count${suffix === '' ? 's' : ''} the files that the containers write, their logs, and the emptyDir volumes on the disk`
        : 'the limit counts the files that the container writes, and its logs',
    ],
    remedy: `raise the ${limits}, or write less`,
  };
}

const lowered = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
