/** The columns and cells of `kubectl get events`. Source: the Event printer of v1.33. */
import type { CoreV1Event } from '../../../generated/types.ts';
import type { WriteContext } from '../../../kind.ts';
import { ageCell, column } from '../../../table.ts';

export const eventColumns = [
  column('Last Seen', 'How long ago it happened the last time.'),
  column('Type', 'Normal or Warning.'),
  column('Reason', 'Why it happened, in a word.'),
  column('Object', 'What it happened to.'),
  column('Subobject', 'The part of the object that it happened to.', { wide: true }),
  column('Source', 'Who reports it.', { wide: true }),
  column('Message', 'What happened.'),
  column('First Seen', 'How long ago it happened first.', { wide: true }),
  column('Count', 'How often it happened.', { wide: true }),
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
