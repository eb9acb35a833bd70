/** The columns and cells of `kubectl get events`. Source: the Event printer of v1.33. */
import type { CoreV1Event } from '../../../generated/types.ts';
import type { WriteContext } from '../../../kind.ts';
import { ageCell, header } from '../../../table.ts';

export const eventColumns = [
  header('Last Seen', 'The time since the most recent occurrence.'),
  header('Type', 'Normal or Warning.'),
  header('Reason', 'The reason for the Event, as a single word.'),
  header('Object', 'The object that the Event is about.'),
  header('Subobject', 'The part of the object that the Event is about.', { wide: true }),
  header('Source', 'The component that reported the Event.', { wide: true }),
  header('Message', 'A description of the occurrence.'),
  header('First Seen', 'The time since the first occurrence.', { wide: true }),
  header('Count', 'The number of occurrences.', { wide: true }),
  header('Name', 'The name of the Event.', { wide: true, format: 'name' }),
];

export function eventRow(event: CoreV1Event, { now }: WriteContext): (string | number)[] {
  const { involvedObject: object = {}, series, source } = event;
  const firstSeen = ageCell(event.firstTimestamp ?? event.eventTime, now);
  const lastTime = series === undefined ? event.lastTimestamp : series.lastObservedTime;
  const lastSeen = series === undefined && lastTime === undefined ? firstSeen : ageCell(lastTime, now);
  const kind = (object.kind ?? '').toLowerCase();
  const component = source?.component || event.reportingComponent || '';
  const instance = source?.host || event.reportingInstance || '';
  return [
    lastSeen,
    event.type ?? '',
    event.reason ?? '',
    object.name ? `${kind}/${object.name}` : kind,
    object.fieldPath ?? '',
    instance === '' ? component : `${component}, ${instance}`,
    (event.message ?? '').trim(),
    firstSeen,
    series?.count ?? (event.count || 1),
    event.metadata.name,
  ];
}
