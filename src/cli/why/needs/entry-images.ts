/** Explains which images of the defer containers of a running Pod cannot be obtained. Pure. */
import { hasInvalidName, lacksImage, wantedImage } from '../../pod-containers.ts';
import { imageActions, imageEvidence, noImage } from '../images.ts';
import { called, type Explanation, type Living, listed, shownContainers } from '../subject.ts';
import { correctName } from './image-name.ts';

export function explainEntryImages(subject: Living): Explanation | undefined {
  const entries = shownContainers(subject).filter(({ kind, status }) => kind === 'defer' && lacksImage(status));
  const [first] = entries;
  if (first === undefined) return undefined;
  const others = entries.slice(1).map(({ name }) => name);
  return {
    sentence: `${subject.name} runs, but the image ${wantedImage(subject.pod, first).reference} of its ${called(first)} ${noImage(subject, first)}${others.length === 0 ? '' : `; images are also missing for ${listed(others)}`}.`,
    evidence: [
      ...entries.flatMap((shown) => {
        const { waiting } = shown.status.state ?? {};
        return imageEvidence(subject, shown, waiting?.reason ?? '', waiting?.message);
      }),
      'its other containers are not affected: a defer container needs its image only when the Pod ends',
    ],
    actions: [
      ...imageActions(subject, entries),
      ...entries.filter(({ status }) => hasInvalidName(status)).map((shown) => correctName(subject, shown)),
    ],
  };
}
