import type { CoreV1Event } from '../../api/generated/types.ts';
import type { EventDraft } from '../../api/kind.ts';
import { EVENTS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { formatTime } from '../../machinery/time.ts';
import type { RequestContext } from '../../ports/request.ts';
import type { RegistryContext } from './context.ts';
import { createObject } from './create.ts';

const COMPONENT = 'apiserver';

/** Stores Events about the object. Never rejects, because the reported change is already stored; logs errors as warnings. */
export async function recordEvents(
  context: RegistryContext,
  { apiVersion, kind, metadata }: KubeObject,
  drafts: readonly EventDraft[],
  request: RequestContext,
): Promise<void> {
  const { name, namespace = 'default', uid, resourceVersion } = metadata;
  const time = formatTime(context.timers.now());
  for (const { fieldPath, ...draft } of drafts) {
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: `${name}.`, namespace },
      involvedObject: { apiVersion, kind, name, namespace, uid, resourceVersion, fieldPath },
      ...draft,
      source: { component: COMPONENT },
      firstTimestamp: time,
      lastTimestamp: time,
      count: 1,
      reportingComponent: COMPONENT,
      reportingInstance: '',
    } as unknown as CoreV1Event;
    try {
      const { user, source, signal, audit, outside } = request;
      const shared = { user, source, signal, audit, outside };
      const created: RequestContext = { ...shared, verb: 'create', resource: EVENTS, namespace };
      await createObject(context, context.resources.find(EVENTS), namespace, event, { request: created });
    } catch (error) {
      const fields = { reason: draft.reason, object: name, error: (error as Error).message };
      context.log.warn('registry: cannot store an event', fields);
    }
  }
}
