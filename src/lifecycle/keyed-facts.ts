import type { Situation } from './container-phases.ts';
import type { Plan } from './effects.ts';
import type { PodEvent, Transition } from './types.ts';
import type { ContainerView } from './view.ts';

/** key: distinguishes Events with the same reason about the same container or Pod. fieldPath: by default the field of the container. */
type AddEvent = (reason: string, message: string, key?: string | number, fieldPath?: string) => void;

export interface Facts extends Situation {
  plan: Plan;
  events: Map<string, PodEvent>;
  /** The steps that no earlier decision reported, by their keys. */
  steps: Map<string, Transition>;
  /** The keys of all steps that hold now. */
  held: Set<string>;
  normal: AddEvent;
  warning: AddEvent;
  /** key: by default the type, with the container and attempt, if any; at: by default now. Empty details are omitted. */
  step(type: string, details?: { [Field in keyof Transition]?: Transition[Field] | undefined }): void;
}

/** Without `about`, the Events and steps are about the Pod. */
export function factsOf(
  source: Omit<Facts, 'normal' | 'warning' | 'step'>,
  about?: ContainerView,
  attempt?: number,
): Facts {
  const { events, steps, held } = source;
  const { recorded } = source.view.input.memory;
  const addTo =
    (type: PodEvent['type']): AddEvent =>
    (reason, message, key = '', fieldPath = about?.fieldPath) =>
      events.set([about?.fieldPath, reason, key].join('/'), { type, reason, message, ...(fieldPath && { fieldPath }) });
  const step: Facts['step'] = (type, { at = source.view.now, key, ...details } = {}) => {
    const id = key ?? (about === undefined ? type : `${type}/${about.name}/${attempt}`);
    held.add(id);
    if (recorded.has(id)) return;
    const all = { container: about?.name, containerKind: about?.kind, attempt, ...details };
    const known = Object.entries(all).filter(([, value]) => value !== undefined && value !== '');
    steps.set(id, { key: id, at, type, ...Object.fromEntries(known) });
  };
  return { ...source, normal: addTo('Normal'), warning: addTo('Warning'), step };
}
