/** Explains which images of a Pod cannot be obtained. Pure. */
import { containersOf } from '../../api/core/v1/pod/containers.ts';
import { isMakeable } from '../make-image/makeable.ts';
import { imageOf, lacksImage } from '../pod-containers.ts';
import {
  type Action,
  ago,
  called,
  type Explanation,
  inTime,
  type Living,
  lastStep,
  listed,
  loadImage,
  oneLine,
  type Shown,
  shownContainers,
} from './subject.ts';

export function missingImage(subject: Living, shown: Shown): Explanation {
  const { reason = '', message } = shown.status.state?.waiting ?? {};
  const image = imageOf(subject.pod, shown);
  if (reason === 'InvalidImageName') return invalidName(subject, shown, image, message);
  return {
    sentence: `${subject.name} waits for the image ${image} of its ${called(shown)}: it ${noImage(subject, shown.name, reason)}.`,
    evidence: imageEvidence(subject, shown, reason, message),
    actions: imageActions(subject, [shown]),
  };
}

function invalidName(subject: Living, shown: Shown, image: string, message: string | undefined): Explanation {
  return {
    sentence: `${subject.name} cannot start: ${JSON.stringify(image)}, the image of its ${called(shown)}, is not a valid image name.`,
    evidence: [`InvalidImageName: ${oneLine(message)}`],
    actions: [
      {
        description:
          'an image name is [REGISTRY/]PATH[:TAG] with a PATH in lower case, such as registry.example/team/app:1.2',
      },
      setImage(subject, shown),
    ],
  };
}

/** The image is one of the few fields of a Pod that can be changed, so the Pod need not be recreated. */
const setImage = ({ name, namespace, hints }: Living, shown: Shown): Action => ({
  description: 'correct the name',
  command: hints.kubectl(`set image pod/${name} -n ${namespace} ${shown.name}=IMAGE`),
});

/** Returns a phrase such as `cannot be pulled, the next attempt is in 15.0s`. */
function noImage(subject: Living, container: string, reason: string): string {
  if (reason === 'ErrImageNeverPull') return 'is not on the node and may not be pulled';
  const next = lastStep(subject, ['PullFailed'], container)?.deadline;
  return `cannot be pulled${next === undefined ? '' : `, the next attempt is ${inTime(next, subject.now)}`}`;
}

function imageEvidence(subject: Living, shown: Shown, reason: string, message: string | undefined): string[] {
  const failed = lastStep(subject, ['PullFailed'], shown.name);
  const tries = subject.transitions.filter(({ type, container }) => type === 'PullFailed' && container === shown.name);
  const count = `${tries.length} ${tries.length === 1 ? 'attempt' : 'attempts'} failed`;
  return [
    `${reason}: ${oneLine(message)}`,
    ...(failed === undefined ? [] : [`${count}, the last one ${ago(failed.at, subject.now)}`]),
  ];
}

function imageActions(subject: Living, shown: readonly Shown[]): Action[] {
  const isPulledAlways = containersOf(subject.pod).some(
    ({ name, imagePullPolicy }) => imagePullPolicy === 'Always' && shown.some((each) => each.name === name),
  );
  return isPulledAlways
    ? [
        { description: 'check the name, and whether the registry answers' },
        {
          description:
            'its imagePullPolicy is Always, so loading the image is not enough; with IfNotPresent it would be: lifepod image load FILE',
        },
      ]
    : [
        { description: 'check the name, and whether the registry answers' },
        ...makeImage(subject, shown),
        loadImage(subject),
      ];
}

function makeImage({ pod, hints }: Living, shown: readonly Shown[]): Action[] {
  const images = new Set(shown.map((each) => imageOf(pod, each)).filter(isMakeable));
  if (images.size === 0) return [];
  return [
    {
      description: "make it from this machine's busybox",
      command: hints.engine(`image make ${[...images].join(' ')}`),
    },
  ];
}

/** Explains a running Pod whose defer containers will need images that cannot be obtained. */
export function explainEntryImages(subject: Living): Explanation | undefined {
  const entries = shownContainers(subject).filter(({ kind, status }) => kind === 'defer' && lacksImage(status));
  const [first] = entries;
  if (first === undefined) return undefined;
  const { reason = '' } = first.status.state?.waiting ?? {};
  const others = entries.slice(1).map(({ name }) => name);
  const what = reason === 'InvalidImageName' ? 'is not a valid image name' : noImage(subject, first.name, reason);
  return {
    sentence: `${subject.name} runs, but the image ${imageOf(subject.pod, first)} of its ${called(first)} ${what}${others.length === 0 ? '' : `; images are also missing for ${listed(others)}`}.`,
    evidence: [
      ...entries.flatMap((shown) => {
        const { waiting } = shown.status.state ?? {};
        return imageEvidence(subject, shown, waiting?.reason ?? '', waiting?.message);
      }),
      'its other containers are not affected: a defer container needs its image only when the Pod ends',
    ],
    actions: imageActions(subject, entries),
  };
}
