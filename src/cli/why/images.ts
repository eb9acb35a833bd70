/** Explains which images of a Pod cannot be obtained. Pure. */
import type { ContainerStatus } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { imageNameRule, normalizeReference, readsLikeId, referenceError } from '../../runtime/images/references.ts';
import { isMakeable } from '../make-image/makeable.ts';
import { hasInvalidName, policyField, pullPolicyOf, wantedImage } from '../pod-containers.ts';
import { isProxyFailure, isUnreachable, pullReason, stoppedRegistry } from '../pull-reason.ts';
import { type PullOfPod, registryAdvice } from '../registries/registry-advice.ts';
import { invalidName, invalidReference } from './needs/image-name.ts';
import {
  type Action,
  activeBound,
  ago,
  called,
  type Explanation,
  inTime,
  type Living,
  loadImage,
  oneLine,
  type Shown,
  shownContainers,
  withoutAttempt,
} from './subject.ts';

export function missingImage(subject: Living, shown: Shown): Explanation {
  const { reason = '', message } = shown.status.state?.waiting ?? {};
  const { reference: image, volume } = wantedImage(subject.pod, shown);
  if (hasInvalidName(shown.status)) return invalidName(subject, shown);
  const later = laterImages(subject, shown);
  // A Pod runs without its ephemeral containers, which can be neither changed nor removed.
  const isExtra = shown.kind === 'ephemeral' && volume === undefined;
  const what = `the image ${image} of its ${volume === undefined ? called(shown) : `volume ${volume.name}`}`;
  return {
    sentence: `${subject.name} ${isExtra ? `runs, but ${what}` : `waits for ${what}: it`} ${noImage(subject, shown)}.`,
    evidence: [
      ...imageEvidence(subject, shown, reason, message),
      ...later.map(
        (each) =>
          `${called(each)} waits for this, and its image ${wantedImage(subject.pod, each).reference} is not on the node either`,
      ),
      ...(isExtra ? ['its other containers are not affected'] : []),
    ],
    actions: [...imageActions(subject, [shown, ...later]), ...(isExtra ? [addAnother] : [])],
  };
}

const addAnother: Action = {
  description: 'if the name is wrong, add another ephemeral container: this one stays until the Pod is recreated',
};

/**
 * Returns the containers that have not started yet, and whose images will be missing, too, because the node is offline or may not pull
 * them. Gives them the state of `shown`, as if they waited for their images. Returns none if it is not known which images the node has.
 */
function laterImages(subject: Living, shown: Shown): Shown[] {
  if (subject.node === undefined || isListCut(subject) || (mayPull(shown) && !isOffline(shown))) return [];
  const imageOf = (each: Shown): string => wantedImage(subject.pod, each).reference;
  return shownContainers(subject)
    .filter((each) => {
      const isNext = each.kind !== 'defer' && NOT_STARTED.includes(each.status.state?.waiting?.reason ?? '');
      const isSame = imageOf(each) === imageOf(shown);
      const cannotPull = mayPull(shown) || pullPolicyOf(subject.pod, each) === 'Never';
      return isNext && !isSame && cannotPull && !isOnNode(subject, each);
    })
    .map((each) => ({ ...each, status: { ...each.status, state: shown.status.state } }));
}

/** The reasons of containers that wait for others, or have not been started yet. Source: the kubelet of v1.33. */
const NOT_STARTED = ['PodInitializing', 'ContainerCreating'];

export function lackOfImage({ state }: Pick<ContainerStatus, 'state'>): string {
  const { reason, message } = state?.waiting ?? {};
  if (hasInvalidName({ state })) return 'is not a valid image name';
  if (reason === 'ErrImageNeverPull') return 'is not on the node and may not be pulled';
  const why = pullReason(message);
  return `cannot be pulled${why && ` (${why})`}`;
}

export function noImage(subject: Living, shown: Shown): string {
  const { status } = shown;
  const next = failedPulls(subject, shown).at(-1)?.deadline;
  const isRepeated = mayPull(shown) && !hasInvalidName(status) && next !== undefined;
  // activeDeadlineSeconds does not bound defer containers, which run during the termination.
  const never = shown.kind === 'defer' ? undefined : withoutAttempt(next, activeBound(subject.pod), subject.now);
  const again =
    never === undefined
      ? `the next attempt is ${inTime(next ?? 0, subject.now)}`
      : `and the pull is not repeated, ${never}`;
  return `${lackOfImage(status)}${isRepeated ? `, ${again}` : ''}`;
}

/**
 * Returns the recorded failures to pull the missing image, oldest first. With several image volumes, omits failures whose message does not
 * name the image.
 */
function failedPulls({ pod, transitions }: Living, shown: Shown): Transition[] {
  const { name } = shown;
  const { volume } = wantedImage(pod, shown);
  const images = (pod.spec?.volumes ?? []).filter(({ image }) => image !== undefined);
  const isNamed = (message: string | undefined): boolean =>
    wantedImage(pod, { name, status: { state: { waiting: { message } } } }).volume === volume;
  return transitions
    .filter(({ type, container, deadline, message }) =>
      volume === undefined
        ? type === 'PullFailed' && container === name
        : // Among the steps MountFailed, those about images have a deadline.
          type === 'MountFailed' && deadline !== undefined && (images.length === 1 || isNamed(message)),
    )
    .sort((a, b) => a.at - b.at);
}

export function imageEvidence(subject: Living, shown: Shown, reason: string, message: string | undefined): string[] {
  const tries = failedPulls(subject, shown);
  const failed = tries.at(-1);
  const count = `${tries.length} ${tries.length === 1 ? 'attempt' : 'attempts'} failed`;
  return [
    `${reason}: ${oneLine(message)}`,
    ...(failed === undefined ? [] : [`${count}, the last one ${ago(failed.at, subject.now)}`]),
  ];
}

/** A Pod with images to advise on. If `node` is undefined, no image counts as present on the node. */
export interface Advised extends PullOfPod, Pick<Living, 'node'> {
  /** Whether the advice is for later Pods, because this one does not need the images any more. */
  isForLater?: true;
}

const recreate = ({ isForLater }: Advised): string => (isForLater === true ? '' : ', and recreate the Pod');

export function imageActions(subject: Advised, shown: readonly Shown[]): Action[] {
  const valid = shown.filter(({ status }) => !hasInvalidName(status));
  const { ofPresent, ofMissing } = remedies(subject, valid);
  const named = valid.filter((each) => mayPull(each) && !isById(subject, each));
  const check = named.length > 0 ? [checkRegistry(subject, named)] : [];
  return [
    ...nameRules(subject, shown),
    ...ofPresent,
    // If the registry cannot be reached, the actions that need no registry come first.
    ...(valid.some(isOffline) ? [...ofMissing, ...check] : [...check, ...ofMissing]),
  ];
}

/** Returns what the user can do without a registry so that a later start of the containers succeeds. */
export function imageRemedies(subject: Advised, shown: readonly Shown[]): Action[] {
  const { ofPresent, ofMissing } = remedies(
    subject,
    shown.filter(({ status }) => !hasInvalidName(status)),
  );
  return [...ofPresent, ...ofMissing, ...nameRules(subject, shown)];
}

function nameRules({ pod }: Advised, shown: readonly Shown[]): Action[] {
  const rules = shown
    .filter(({ status }) => hasInvalidName(status))
    .map((each) => imageNameRule(invalidReference(pod, each)));
  return [...new Set(rules)].map((description) => ({ description }));
}

/** Returns, as one phrase, what the user can do about the missing image without a registry, or with one that answers or may run here. */
export function imageHint(subject: Advised, shown: Shown): string {
  return actionsText([...knownRemedies(subject, [shown]).slice(0, 1), ...imageRemedies(subject, [shown])]);
}

export const actionsText = (actions: readonly Action[]): string =>
  actions.map(({ description, command }) => `${description}${command === undefined ? '' : `: ${command}`}`).join('; ');

const stoppedRegistryOf = ({ status }: Shown): string | undefined => stoppedRegistry(status.state?.waiting?.message);

const isOffline = (shown: Shown): boolean =>
  isUnreachable(shown.status.state?.waiting?.message) && stoppedRegistryOf(shown) === undefined;

const mayPull = ({ status }: Shown): boolean => status.state?.waiting?.reason !== 'ErrImageNeverPull';

const isById = ({ pod }: Advised, shown: Shown): boolean => readsLikeId(wantedImage(pod, shown).reference);

/** The Node reports the names of its images, but not their IDs. */
function ofId(subject: Advised, shown: Shown): Action {
  const list = `'${subject.hints.engine('image list')}'`;
  const advice =
    pullPolicyOf(subject.pod, shown) === 'Always'
      ? `if ${list} shows this ID on the node, set ${policyField(subject.pod, [shown])}: IfNotPresent${recreate(subject)}; otherwise use the name of the image`
      : `use a name that ${list} shows`;
  return {
    description: `${wantedImage(subject.pod, shown).reference} reads like the ID of an image, which the node cannot pull: ${advice}`,
  };
}

/**
 * Returns what the user can do without a registry. `ofPresent`: for images that are on the node, but that imagePullPolicy Always pulls
 * again, and for references that read like IDs of images. `ofMissing`: for the others.
 */
function remedies(subject: Advised, shown: readonly Shown[]): { ofPresent: Action[]; ofMissing: Action[] } {
  const isAlways = (each: Shown): boolean => pullPolicyOf(subject.pod, each) === 'Always';
  const ids = shown.filter((each) => isById(subject, each));
  const named = shown.filter((each) => !ids.includes(each));
  const present = named.filter((each) => isAlways(each) && isOnNode(subject, each));
  const missing = named.filter((each) => !present.includes(each));
  const mayBePresent = missing.some(isAlways) && isListCut(subject);
  const always = mayBePresent
    ? `its ${policyField(subject.pod, missing)} is Always, so the node pulls it even if it has it, as '${subject.hints.engine('image list')}' shows: ${neverAlways(subject, missing)}`
    : missing.some(isAlways)
      ? `its ${policyField(subject.pod, missing)} is Always, so loading the image is not enough: also ${neverAlways(subject, missing)}`
      : undefined;
  const never = named.some(mayPull)
    ? undefined
    : `${subject.isForLater === true ? '' : 'or '}let the node pull it: set ${policyField(subject.pod, named)}: IfNotPresent${recreate(subject)}`;
  const action = (description: string | undefined): Action[] => (description === undefined ? [] : [{ description }]);
  return {
    ofPresent: [
      ...ids.map((each) => ofId(subject, each)),
      ...action(present.length === 0 ? undefined : `it is on this node: ${neverAlways(subject, present)}`),
    ],
    ofMissing:
      missing.length === 0
        ? []
        : [
            ...action(always),
            ...[...makeImage(subject, missing), loadArchive(subject, missing)].map((each) =>
              mayBePresent ? { ...each, description: `if the node does not have it, ${each.description}` } : each,
            ),
            ...action(never),
          ],
  };
}

function loadArchive(subject: Advised, shown: readonly Shown[]): Action {
  // Invalid names are not part of the command: a shell would run parts of a name that another user has chosen.
  const valid = [...new Set(shown.map((each) => wantedImage(subject.pod, each).reference))].filter(
    (each) => referenceError(each) === undefined,
  );
  // An archive of docker save may not have the digests of images.
  const images = valid.filter((each) => !each.includes('@'));
  const how = images.length === 0 ? '' : `, such as 'docker save ${images.join(' ')} > FILE' writes on another machine`;
  const ofDigest =
    images.length === valid.length ? '' : ' (for a digest, from an OCI archive whose index.json has this digest)';
  return loadImage(subject, `load it from an archive, without a registry${how}${ofDigest}`);
}

function startRegistry(shown: readonly Shown[]): Action[] {
  const stopped = shown.flatMap((each) => stoppedRegistryOf(each) ?? []);
  return stopped.slice(0, 1).map((address) => ({
    description: `start the registry on ${address}, where no program listens: the pull is repeated`,
  }));
}

/** Returns the remedies of the causes that the messages name, except for those of a machine that is offline. */
const knownRemedies = (subject: Advised, shown: readonly Shown[]): Action[] => [
  ...startRegistry(shown),
  ...shown.filter(mayPull).flatMap((each) => {
    const { message } = each.status.state?.waiting ?? {};
    return isProxyFailure(message)
      ? []
      : (registryAdvice(subject, wantedImage(subject.pod, each).reference, message) ?? []);
  }),
];

function checkRegistry(subject: Advised, shown: readonly Shown[]): Action {
  if (shown.some(isOffline))
    return { description: "check this machine's network, and the name of the registry: the pull is repeated" };
  const [known] = knownRemedies(subject, shown);
  if (known !== undefined) return known;
  return shown.some(({ status }) => isProxyFailure(status.state?.waiting?.message))
    ? {
        description:
          'check HTTPS_PROXY, HTTP_PROXY and NO_PROXY in the environment in which the engine, or the container runtime of the machine, was started',
      }
    : { description: 'check the name, and whether the registry answers' };
}

/** imagePullPolicy is Always by default for the tag latest, even an implied one. Source: v1.33. */
function neverAlways(subject: Advised, shown: readonly Shown[]): string {
  const isLatest = shown.some((each) => /:latest$/.test(storedImage(subject.pod, each)));
  return `set ${policyField(subject.pod, shown)}: IfNotPresent${isLatest ? ' (or use a tag other than latest)' : ''}${recreate(subject)}`;
}

/** Returns '' if the reference is not valid. */
function storedImage(pod: Living['pod'], shown: Shown): string {
  const image = wantedImage(pod, shown).reference;
  return referenceError(image) === undefined ? normalizeReference(image) : '';
}

const isOnNode = ({ pod, node }: Advised, shown: Shown): boolean =>
  (node?.status?.images ?? []).some(({ names }) => names?.includes(storedImage(pod, shown)));

/** Returns whether the node may have more images, or more names of them, than it reports: at most 50, with 5 names each. Source: v1.33. */
const isListCut = ({ node }: Advised): boolean => {
  const images = node?.status?.images ?? [];
  return images.length >= 50 || images.some(({ names = [] }) => names.length >= 5);
};

function makeImage({ pod, hints }: Advised, shown: readonly Shown[]): Action[] {
  const images = new Set(shown.map((each) => wantedImage(pod, each).reference).filter(isMakeable));
  if (images.size === 0) return [];
  return [
    {
      description: "make it from this machine's busybox",
      command: hints.engine(`image make ${[...images].join(' ')}`),
    },
  ];
}
