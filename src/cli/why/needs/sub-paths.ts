/** Explains messages of the node about the subPaths of volume mounts. Pure. */
import { containersOf } from '../../../api/core/v1/pod/containers.ts';
import type { Pod } from '../../../api/generated/types.ts';
import { listed } from '../subject.ts';

/** Explains a message about a subPath that cannot be mounted, or about its variables; undefined for other messages. */
export const subPathFinding = (pod: Pod, text: string) => unmountedPath(pod, text) ?? missingVariable(text);

/** Source: src/node/container/container-files.ts (the messages, which are upstream's and name neither the path nor the cause). */
const UNMOUNTED =
  /failed to (create subPath directory|prepare subPath) for volumeMount "([^"]+)" of container "([^"]+)"/;

function unmountedPath(pod: Pod, text: string) {
  const [, step, volume = '', container] = UNMOUNTED.exec(text) ?? [];
  const mounts = containersOf(pod).find(({ name }) => name === container)?.volumeMounts ?? [];
  // Several mounts of one volume can have a subPath, and the message does not say which of them failed.
  const paths = mounts.flatMap(({ name, subPath, subPathExpr }) =>
    name === volume ? subPath || subPathExpr || [] : [],
  );
  if (paths.length === 0) return undefined;
  const path = `the subPath ${[...new Set(paths)].join(' or ')} of its volume ${volume}`;
  const image = pod.spec?.volumes?.find(({ name }) => name === volume)?.image?.reference;
  if (step === 'prepare subPath')
    return only(
      `cannot mount ${path}, probably because the path leads through a file, or through a link to a place outside the volume`,
      `correct the subPath${image === undefined ? ', or the files of the volume' : ''}, and recreate the Pod`,
    );
  // The node cannot create a missing path, because image volumes are read-only.
  if (image !== undefined)
    return only(
      `needs ${path}, which the image ${image} does not have`,
      'correct the subPath, and recreate the Pod, or use an image that has this path',
    );
  return only(
    `needs ${path}, which does not exist and cannot be created, probably because the volume is read-only or full`,
    'correct the subPath, and recreate the Pod, or create the path in the volume: the node retries automatically',
  );
}

/** Source: src/node/container/expand.ts (the message). */
function missingVariable(text: string) {
  const [, names] = /^missing value for (.+)$/.exec(text) ?? [];
  if (names === undefined) return undefined;
  const are = names.includes(', ');
  return only(
    `cannot mount a subPathExpr: the env of the container gives its variable${are ? 's' : ''} ${listed(names.split(', '))} no value`,
    'set the variable in the env of the container, or correct the subPathExpr, and recreate the Pod',
  );
}

const only = (cause: string, description: string) => ({ cause, actions: [{ description }] });
