/** Explains that the name of an image is not valid. Pure. */
import type { Pod } from '../../../api/generated/types.ts';
import { imageNameRule } from '../../../runtime/images/references.ts';
import { wantedImage } from '../../pod-containers.ts';
import { type Action, called, type Explanation, type Living, oneLine, type Shown } from '../subject.ts';

export function invalidNameText(
  pod: Pod,
  shown: Pick<Shown, 'kind' | 'name'> & Partial<Pick<Shown, 'status'>>,
): string {
  const { reference, volume } = wantedImage(pod, shown);
  const owner = volume === undefined ? called(shown) : `volume ${volume.name}`;
  return `${JSON.stringify(reference)}, the image of its ${owner}, is not a valid image name`;
}

export function invalidName(subject: Living, shown: Shown): Explanation {
  const { reason = '', message } = shown.status.state?.waiting ?? {};
  const { reference, volume } = wantedImage(subject.pod, shown);
  const correct: Action =
    volume === undefined ? setImage(subject, shown) : { description: 'correct the name, and recreate the Pod' };
  return {
    sentence: `${subject.name} cannot start: ${invalidNameText(subject.pod, shown)}.`,
    evidence: [`${reason}: ${oneLine(message)}`],
    actions: [{ description: imageNameRule(reference) }, correct],
  };
}

/** The image of a container can be changed without recreating the Pod. */
const setImage = ({ name, namespace, hints }: Living, shown: Shown): Action => ({
  description: 'correct the name',
  command: hints.kubectl(`set image pod/${name} -n ${namespace} ${shown.name}=IMAGE`),
});
