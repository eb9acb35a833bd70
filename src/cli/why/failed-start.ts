/** Explains why a container cannot be started: its command, its settings, or an object that it needs. Pure. */
import type { ContainerStateTerminated } from '../../api/generated/types.ts';
import { END_UNKNOWN } from '../../lifecycle/view.ts';
import { shellQuoted } from '../../platform/programs/typed-program.ts';
import { fullDiskText } from '../../runtime/full-disk.ts';
import { itsImage, lacksImage } from '../pod-containers.ts';
import { imageRemedies, lackOfImage } from './images.ts';
import { tooLowLimit } from './memory-limit.ts';
import { unmountableClaim } from './needs/claim-advice.ts';
import { type Finding, type Needing, objectFinding } from './needs/objects.ts';
import { called, type Explanation, eventLine, eventOf, type Living, lastStep, oneLine, type Shown } from './subject.ts';

export function failedStart(subject: Living, shown: Shown, reason: string, message: string): Explanation {
  const text = oneLine(message) || reason;
  const { cause, actions } = startFinding(subject, shown.name, reason, text);
  return {
    sentence: `${subject.name} ${shown.kind === 'ephemeral' ? 'waits' : 'cannot start'}: ${called(shown)} ${cause}.`,
    evidence: [
      cause.includes(text) ? `status.state.waiting.reason is ${reason}` : `${reason}: ${text}`,
      ...eventLine(eventOf(subject, ['Failed'], shown.name), subject),
    ],
    actions,
  };
}

/** The reasons of the state `waiting` or `terminated` of a container whose process could not be started. */
export const FAILED_START_REASONS: readonly string[] = ['StartError', 'ContainerCannotRun', 'RunContainerError'];

/** Returns why a run that has ended could not start; undefined if it did start, or if its state and its log do not say why. */
export function failedRun(
  subject: Living,
  name: string,
  { reason = '', message }: ContainerStateTerminated,
): Finding | undefined {
  const text = oneLine(message);
  // The kernel rejects the program only after runc has started the container, so runc can only write its message to the log.
  if (reason === 'Error') return formatFinding(text || (subject.lastLines[name]?.join() ?? ''));
  return FAILED_START_REASONS.includes(reason) && text !== '' ? startFinding(subject, name, reason, text) : undefined;
}

/** The node reports this end for a container that the container runtime does not have. Source: the kubelet of v1.33 (reason, exit code). */
export const isNotFound = ({ reason }: ContainerStateTerminated): boolean => reason === END_UNKNOWN;

/**
 * Returns a clause about a container that had not started when its Pod ended, and what the user can do before the next Pod. Undefined if
 * the container had started, or if the record does not contain why it had not.
 */
export function unstarted(
  subject: Living,
  { kind, name, status }: Shown,
  ended: ContainerStateTerminated,
): Finding | undefined {
  const failed = isNotFound(ended) ? lastStep(subject, ['Started', 'PullFailed', 'StartFailed'], name) : undefined;
  if (failed === undefined || failed.type === 'Started') return undefined;
  const { reason = '', message } = failed;
  const shown: Shown = { kind, name, status: { ...status, state: { waiting: { reason, message } } } };
  const begin = `${called(shown)} had not started: `;
  if (lacksImage(shown.status))
    return {
      cause: `${begin}${itsImage(subject.pod, shown)} ${lackOfImage(shown.status)}`,
      actions: imageRemedies(subject, [shown]),
    };
  return { cause: `${begin}it ${startFinding(subject, name, reason, oneLine(message) || reason).cause}`, actions: [] };
}

/**
 * Returns a verb phrase that says why a command, its working directory or a volume mount cannot be used; undefined for messages about other
 * problems.
 */
export const commandError = (message: string | undefined): string | undefined =>
  commandFinding(oneLine(message))?.cause;

/** Explains the failed start of a container by its message `text` and the reason in the container's state. */
export function startFinding(subject: Needing, container: string, reason: string, text: string): Finding {
  const limit = tooLowLimit(subject.pod, container, text);
  if (limit !== undefined) return { ...limit, cause: `cannot be started: ${limit.cause}` };
  const found = commandFinding(text) ?? imageFinding(text) ?? objectFinding(subject, text);
  if (found !== undefined) return found;
  const full = fullDiskText(text);
  if (full !== undefined) {
    const isFinal = FAILED_START_REASONS.includes(reason) && subject.pod.spec?.restartPolicy === 'Never';
    return only(
      `cannot be started, ${full}`,
      isFinal ? 'free some space on this disk, and recreate the Pod' : FREE_SPACE,
    );
  }
  const setting = nonRootFinding(text) ?? recursiveMountFinding(text);
  if (setting !== undefined) return setting;
  const cause = `cannot be started, ${text}`;
  if (/target container/.test(text))
    return only(
      cause,
      'wait for its target container: it starts when that container runs; an ephemeral container without a target starts at once',
    );
  return only(
    cause,
    reason === 'CreateContainerConfigError'
      ? 'fix the named problem in the Pod or on the node: the node retries automatically; to change the Pod, recreate it'
      : 'if the Pod is the cause, fix its command, volumeMounts, security context or devices, and recreate it',
  );
}

const only = (cause: string, description: string): Finding => ({ cause, actions: [{ description }] });

/** Source: src/node/container/container-security.ts (the messages). */
function nonRootFinding(text: string): Finding | undefined {
  const cause = 'may not run as root (runAsNonRoot)';
  if (/runAsUser breaks non-root policy/.test(text))
    return only(
      `${cause}, but its runAsUser is 0`,
      'give it a runAsUser above 0, or set runAsNonRoot to false, and recreate the Pod',
    );
  if (/runAsNonRoot and image will run as root/.test(text))
    return only(
      `${cause}, but its image runs as root`,
      'give it a runAsUser above 0, or an image with a numeric non-root user, and recreate the Pod',
    );
  const [, user] = /runAsNonRoot and image has non-numeric user \((.*?)\), cannot verify/.exec(text) ?? [];
  if (user === undefined) return undefined;
  return only(
    `${cause}, but the user of its image is the name ${user}, which may mean root`,
    'set runAsUser in its securityContext to the number of this user, or use an image with a numeric non-root user, and recreate the Pod',
  );
}

/** Source: src/node/container/container-config.ts (the message). */
function recursiveMountFinding(text: string): Finding | undefined {
  const [, volume] = /volume "([^"]+)" requested recursive read-only mode, but it is not supported/.exec(text) ?? [];
  if (volume === undefined) return undefined;
  return only(
    `mounts the volume ${volume} with recursiveReadOnly: Enabled, which the container runtime of its node does not support`,
    'set recursiveReadOnly to IfPossible or Disabled and recreate the Pod, or use a newer container runtime (containerd 2.0)',
  );
}

/** The runtime's message about a program that it cannot execute: the program, and the error. Source: runc's messages. */
const EXEC_ERROR =
  /exec: "?([^":]+)"?: .*?(executable file not found in \$PATH|no such file or directory|permission denied|is a directory)/;
/** The whole output of a container whose program the kernel rejects. Source: runc's messages, the second one before 1.1. */
const FORMAT_ERROR = /^(?:exec (\S+)|.*exec user process caused): exec format error$/;

function formatFinding(text: string): Finding | undefined {
  const [found, program] = FORMAT_ERROR.exec(text) ?? [];
  if (found === undefined) return undefined;
  return only(
    `cannot execute its command${program === undefined ? '' : ` ${program}`}: it is a program for another CPU, or a script without an interpreter in its first line`,
    'use an image for the CPU of the node, or begin the script with a line such as #!/bin/sh, and recreate the Pod',
  );
}

/** The runtime's message about a folder in which it cannot start the program. */
const FOLDER_ERROR =
  /(?:chdir to cwd|mkdir) \(?"?([^"):]+)"?\)?.*?(permission denied|not a directory|no such file or directory)/;

/** The runtime's message about a volume of another type than what the image has at its path. Source: runc's messages. */
const MOUNT_ERROR = /error mounting "([^"]*)" to rootfs at "([^"]+)".*not a directory/;
/** The place at which the node mounts a subPath. Source: src/node/container/container-config.ts. */
const SUB_PATH_MOUNT = /\/volume-subpaths\/([^/]+)\//;

function commandFinding(text: string): Finding | undefined {
  const [, source = '', place] = MOUNT_ERROR.exec(text) ?? [];
  const [, volume] = SUB_PATH_MOUNT.exec(source) ?? [];
  if (place !== undefined && volume !== undefined)
    return only(
      `cannot mount a subPath of its volume ${volume} at ${place}: the subPath is a folder and the image has a file there, or vice versa`,
      'correct the subPath if the volume has no such path (or the ConfigMap or Secret no such key), because the node then creates an empty folder, or name another mountPath, and recreate the Pod',
    );
  if (place !== undefined)
    return only(
      `cannot mount a volume at ${place}: the volume is a folder and the image has a file there, or vice versa`,
      'in its volumeMounts, name another mountPath, or mount one file of the volume with subPath, and recreate the Pod',
    );
  const [, program, error = ''] = EXEC_ERROR.exec(text) ?? [];
  const [, folder, problem = ''] = FOLDER_ERROR.exec(text) ?? [];
  if (folder !== undefined)
    return only(`cannot use its working directory ${folder}: ${problem}`, 'fix its workingDir, and recreate the Pod');
  if (program === undefined) return undefined;
  const cause = `cannot execute its command ${program}`;
  if (/permission denied/.test(error))
    return only(
      `${cause}: permission denied`,
      'make the program executable in the image, for the user of the container, or fix the command, and recreate the Pod',
    );
  if (/is a directory/.test(error))
    return only(`${cause}: it is a directory`, 'name a program in the command, and recreate the Pod');
  return only(
    `${cause}: there is no such file in ${/PATH/.test(error) ? 'the PATH of its image' : 'its image'}`,
    'fix the command, or use an image that has the program, and recreate the Pod; a script also needs its interpreter in the image',
  );
}

/** Only the name of a user or group is looked up, not a number. Source: containerd's messages; the last one is CRI-O's. */
const USER_ERROR =
  /open \S*\/etc\/(?:passwd|group): no such file|no (?:users|groups) found|unable to find (?:user|group) /;

/** Source: the messages of containerd and CRI-O. */
const NO_COMMAND = /no command specified/i;

/** Explains messages about the configuration of the image. */
function imageFinding(text: string): Finding | undefined {
  if (NO_COMMAND.test(text))
    return only(
      'cannot be started: its image defines no command',
      'set its command to a program of the image, and recreate the Pod',
    );
  if (!USER_ERROR.test(text)) return undefined;
  const [, file] = /open \S*(\/etc\/(?:passwd|group)): no such file/.exec(text) ?? [];
  return only(
    `cannot be started: the user of its image is a name that the image does not define${file === undefined ? '' : `: it has no ${file}`}`,
    'set runAsUser in its securityContext to the number of the user, or add the user to the image, and recreate the Pod',
  );
}

/** Explains the message about a volume that cannot be mounted; undefined if no remedy is known. */
export const volumeFinding = (subject: Needing, text: string): Finding | undefined =>
  objectFinding(subject, text) ??
  kindFinding(text) ??
  folderFinding(subject, text) ??
  unmountableClaim(subject, text) ??
  claimFinding(subject, text) ??
  diskFinding(text);

export const FREE_SPACE = 'free some space on this disk: the node retries automatically';

function diskFinding(text: string): Finding | undefined {
  const full = fullDiskText(text);
  return full === undefined ? undefined : only(`cannot be prepared, ${full}`, FREE_SPACE);
}

/** Source: src/node/volumes/set-up.ts and src/node/volumes/projected-files.ts (the messages). */
function kindFinding(text: string): Finding | undefined {
  const [, what = '', kind] = /(volume kind|projected volume source) "([^"]+)" is not supported/.exec(text) ?? [];
  if (kind === undefined) return undefined;
  return what === 'volume kind'
    ? only(
        `is of the kind ${kind}, which lifepod does not support`,
        'recreate the Pod with a volume of another kind, such as hostPath or persistentVolumeClaim',
      )
    : only(`has a source of the kind ${kind}, which lifepod does not support`, 'recreate the Pod without this source');
}

function folderFinding({ hints, pod }: Needing, text: string): Finding | undefined {
  const [, path] = /hostPath type check failed: (.+) is not a directory$/.exec(text) ?? [];
  const isOfPod = pod.spec?.volumes?.some(({ hostPath }) => hostPath?.type === 'Directory' && hostPath.path === path);
  if (path === undefined || isOfPod !== true) return undefined;
  return {
    cause: `needs the folder ${path} on its node, which does not exist or is not a folder`,
    actions: [
      {
        description: 'if it does not exist, create it on the node, and the node retries automatically',
        command: hints.asRoot(`mkdir -p ${shellQuoted(path)}`),
      },
      { description: 'or set the type of the hostPath to DirectoryOrCreate, and recreate the Pod' },
    ],
  };
}

/** Source: src/node/volumes/claim.ts (the message about a PersistentVolume). */
function claimFinding({ hints }: Needing, text: string): Finding | undefined {
  const [, quoted] = /: path ("(?:[^"\\]|\\.)*") does not exist$/.exec(text) ?? [];
  if (quoted === undefined) return undefined;
  const path = JSON.parse(quoted) as string;
  return {
    cause: `needs the folder ${path} of its PersistentVolume, which does not exist, as after a restore, because a backup does not contain the files of volumes`,
    actions: [
      { description: 'copy the folder there if there is a copy, and the node retries automatically' },
      {
        description: 'or begin with an empty folder, if its files are not needed',
        command: hints.asRoot(`mkdir -p -m 777 ${shellQuoted(path)}`),
      },
    ],
  };
}
