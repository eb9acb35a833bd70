/** Finds the latest failure of a probe in the Events of a Pod, and describes it. Pure. */
import type { CoreV1Event } from '../../../api/generated/types.ts';
import type { ProbeKind } from '../../../lifecycle/types.ts';
import { type Millis, parseTime } from '../../../machinery/time.ts';
import { called, eventOf, lastTime, oneLine, type Shown, type Subject } from '../subject.ts';

/**
 * Returns the Event with the latest failure of the container's probe. Each text has an Event of its own, which counts the repetitions of
 * the text. `since`: omits Events that were last repeated earlier; `until`: omits Events that first occurred later.
 */
export function failureEvent(
  { events }: Pick<Subject, 'events'>,
  kind: ProbeKind,
  container: string,
  { since = 0, until = Number.POSITIVE_INFINITY }: { since?: Millis | undefined; until?: Millis },
): CoreV1Event | undefined {
  const ofProbe = events.filter(
    (event) =>
      event.message?.toLowerCase().startsWith(`${kind} probe `) === true &&
      lastTime(event) >= since &&
      (parseTime(event.firstTimestamp) ?? 0) <= until,
  );
  return eventOf({ events: ofProbe }, ['Unhealthy', 'ProbeWarning'], container);
}

/** Returns the error or the output of the probe; empty if the command of the probe had no output. Source: the messages of the kubelet. */
export const failureText = ({ message }: CoreV1Event): string => oneLine(message?.replace(/^\w+ probe [^:]*:/, ''));

/** Returns a clause about a probe that fails. `text`: that of failureText(); undefined if it is not known. */
export function failureClause(
  kind: ProbeKind,
  shown: Pick<Shown, 'kind' | 'name' | 'isSidecar'>,
  verb: 'fails' | 'failed',
  text: string | undefined,
): string {
  const probe = `the ${kind} probe of ${called(shown)}`;
  if (text === '') return `the command of ${probe} ${verb} without output`;
  return `${probe} ${verb}${text === undefined ? '' : `, ${text}`}`;
}
