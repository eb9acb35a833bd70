/** The columns and cells of `kubectl get events`. Source: the Event printer of v1.33. */
import type { CoreV1Event } from '../../../generated/types.ts';
import type { WriteContext } from '../../../kind.ts';
import { ageCell, column } from '../../../table.ts';

export const eventColumns = [
  column('Last Seen', 'The time since the most recent occurrence.'),
  column('Type', 'Normal or Warning.'),
  column('Reason', 'The reason for the Event, as a single word.'),
  column('Object', 'The object that the Event is about.'),
  column('Subobject', 'The part of the object that the Event is about.', { wide: true }),
  column('Source', 'The component that reported the Event.', { wide: true }),
  column('Message', 'A description of the occurrence.'),
  column('First Seen', 'The time since the first occurrence.', { wide: true }),
  column('Count', 'The number of occurrences.', { wide: true }),
  column('Name', 'The name of the Event.', { wide: true, format: 'name' }),
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
