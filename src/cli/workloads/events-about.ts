/** Finds the Events about an object among those of all namespaces. Pure. */
import type { CoreV1Event } from '../../api/generated/types.ts';
import { type KubeObject, uidOf } from '../../machinery/meta.ts';

/** A user can create Events with the UID of any object, but only in the namespaces of that user. */
const keyOf = (namespace = '', uid = ''): string => `${namespace}/${uid}`;

/** Returns a function that returns the Events about an object. `uid`: that of the static Pod for a mirror Pod. */
export function eventsAbout(
  events: readonly CoreV1Event[],
): (object: KubeObject, uid?: string) => readonly CoreV1Event[] {
  const byObject = Map.groupBy(events, ({ metadata, involvedObject }) => keyOf(metadata.namespace, involvedObject.uid));
  return (object, uid = uidOf(object)) => byObject.get(keyOf(object.metadata.namespace, uid)) ?? [];
}
