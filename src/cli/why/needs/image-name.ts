/** Explains that the name of an image is not valid. Pure. */
import type { Pod } from '../../../api/generated/types.ts';
import { imageNameRule } from '../../../runtime/images/references.ts';
import { wantedImage } from '../../pod-containers.ts';
import { type Action, called, type Explanation, type Living, oneLine, type Shown } from '../subject.ts';
import { changeInSource } from './pod-source.ts';

type Named = Pick<Shown, 'kind' | 'name'> & Partial<Pick<Shown, 'status'>>;

/**
 * Returns the name of the image in the message of the container. The spec of a mirror Pod may have another name, if a client has changed
 * it.
 */
export function invalidReference(pod: Pod, shown: Named): string {
  const { reference } = wantedImage(pod, shown);
  const message = shown.status?.state?.waiting?.message ?? '';
  return message.includes(`"${reference}"`) ? reference : (/"([^"]+)"/.exec(message)?.[1] ?? reference);
}

export function invalidNameText(pod: Pod, shown: Named): string {
  const { volume } = wantedImage(pod, shown);
  const owner = volume === undefined ? called(shown) : `volume ${volume.name}`;
  return `${JSON.stringify(invalidReference(pod, shown))}, the image of its ${owner}, is not a valid image name`;
}

export function invalidName(subject: Living, shown: Shown): Explanation {
  const { reason = '', message } = shown.status.state?.waiting ?? {};
  // A Pod runs without its ephemeral containers.
  const state = shown.kind === 'ephemeral' ? 'runs, but' : 'cannot start:';
  return {
    sentence: `${subject.name} ${state} ${invalidNameText(subject.pod, shown)}.`,
    evidence: [`${reason}: ${oneLine(message)}`],
    actions: [{ description: imageNameRule(invalidReference(subject.pod, shown)) }, correctName(subject, shown)],
  };
}

/** Returns how to correct the name of the image. */
export function correctName(subject: Living, shown: Shown): Action {
  const { name, namespace, pod, hints } = subject;
  const { kind, name: container } = shown;
  const { volume } = wantedImage(pod, shown);
  if (kind === 'ephemeral' && volume === undefined)
    return { description: 'add another ephemeral container, with the correct name' };
  // kubectl set image does not know defer containers.
  const setImage = volume === undefined && kind !== 'defer' ? `${container}=IMAGE` : undefined;
  const inSource = changeInSource(subject, 'correct the name', setImage);
  if (inSource !== undefined) return inSource;
  if (volume !== undefined) return { description: 'correct the name, and recreate the Pod' };
  const index = pod.spec?.deferContainers?.findIndex((each) => each.name === container) ?? -1;
  const patch = `[{"op":"replace","path":"/spec/deferContainers/${index}/image","value":"IMAGE"}]`;
  return {
    description: 'correct the name',
    command: hints.kubectl(
      kind === 'defer'
        ? `patch pod ${name} -n ${namespace} --type=json -p '${patch}'`
        : `set image pod/${name} -n ${namespace} ${setImage}`,
    ),
  };
}
