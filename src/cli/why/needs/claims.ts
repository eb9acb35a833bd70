/** Explains why PersistentVolumeClaims are not bound. Pure. */
import type { CoreV1Event } from '../../../api/generated/types.ts';
import { NO_PROVISIONER, SELECTED_NODE } from '../../../scheduling/volume-claims.ts';
import { type Action, eventLine, eventOf, type Living, oneLine, type UnboundClaim } from '../subject.ts';
import { replaceClaim } from './claim-template.ts';

export interface UnboundFinding {
  /** A clause that names each claim and why it is not bound. */
  cause: string;
  evidence: string[];
  actions: Action[];
}

/** Why a claim is not bound, as a clause after `because`, and what to do about it. */
type Cause = { why: string; action: (claim: string, about: Living) => Action };

/** The reasons of Events that say why a claim is not bound. Source: the persistentvolume controller of v1.33. */
const REASONS = ['ProvisioningFailed', 'FailedBinding', 'VolumeMismatch', 'ExternalProvisioning'];

const seeClaim =
  (description: string): Cause['action'] =>
  (claim, { hints, namespace }) => ({ description, command: hints.kubectl(`describe pvc ${claim} -n ${namespace}`) });

/** `part` as for replaceClaim(). */
const replaceOr =
  (other: string, part: string, hint: string): Cause['action'] =>
  (claim, about) =>
    seeClaim(`${other}, or ${replaceClaim(about.pod, claim, part)}: ${hint}`)(claim, about);

const CREATE_VOLUME = seeClaim('create a PersistentVolume that fits the claim: see what it requests');
const SEE_CLASSES: Cause['action'] = (claim, { pod, hints }) => ({
  description: `create the StorageClass, or ${replaceClaim(pod, claim, 'the storageClassName of one that exists')}; see which ones exist`,
  command: hints.kubectl('get storageclass'),
});

/** Patterns for messages of Events. Source: src/controllers/persistent-volumes/claims.ts. */
const MESSAGES: readonly [RegExp, (found: RegExpExecArray) => Cause][] = [
  [
    /^storageclass\.storage\.k8s\.io "(.*)" not found$/,
    ([, name]) => ({ why: `its StorageClass ${name} does not exist`, action: SEE_CLASSES }),
  ],
  [
    /^no persistent volumes available .* no storage class is set$/,
    () => ({ why: 'no PersistentVolume fits it, and it has no storageClassName', action: CREATE_VOLUME }),
  ],
  [
    /^no volume plugin matched name: /,
    () => ({ why: 'no PersistentVolume fits it, and its StorageClass creates none', action: CREATE_VOLUME }),
  ],
  [
    /^Cannot bind to requested volume "(.*?)": (.*)$/,
    ([, name, mismatch]) => ({
      why: `the PersistentVolume ${name} that its spec.volumeName names does not fit: ${mismatch}`,
      action: replaceOr('change the volume', 'a spec that fits', 'see what it requests'),
    }),
  ],
  [
    /external provisioner '(.*?)'/,
    ([, name]) => ({
      why: `the provisioner ${name} of its StorageClass has not created a volume`,
      action: seeClaim('make sure that this provisioner runs, or create a PersistentVolume that fits: see the claim'),
    }),
  ],
  [
    /^failed to provision volume with StorageClass ".*?": (.*)$/,
    ([, error]) => ({
      why: `no volume could be created for it: ${error}`,
      action: replaceOr('remove the cause of the error', 'a spec that is supported', 'see the Events of the claim'),
    }),
  ],
];

function causeOf({ claim, events, storageClass }: UnboundClaim, lacksVolume: boolean): Cause | undefined {
  const message = oneLine(eventOf({ events }, REASONS)?.message);
  for (const [pattern, cause] of MESSAGES) {
    const found = pattern.exec(message);
    if (found !== null) return cause(found);
  }
  const named = claim.spec?.volumeName;
  if (named)
    return {
      why: `the PersistentVolume ${named} that its spec.volumeName names does not exist, or is not free`,
      action: (_, { hints }) => ({
        description: 'create this PersistentVolume, or delete the other claim that uses it: see whether it exists',
        command: hints.kubectl(`get pv ${named}`),
      }),
    };
  if (lacksVolume)
    return {
      why: `no PersistentVolume fits it${storageClass === undefined ? '' : `, and its StorageClass ${claim.spec?.storageClassName} creates none`}`,
      action: CREATE_VOLUME,
    };
  return message === '' ? undefined : { why: message, action: seeClaim('see the claim') };
}

/** Whether the claim waits until the scheduler has chosen a node for its Pod. If the class is not known, an Event decides. */
function waitsForPod({ claim, events, storageClass }: UnboundClaim): boolean {
  if (claim.metadata.annotations?.[SELECTED_NODE] !== undefined) return false;
  if (storageClass !== undefined) return storageClass.volumeBindingMode === 'WaitForFirstConsumer';
  return eventOf({ events }, REASONS) === undefined && eventOf({ events }, ['WaitForFirstConsumer']) !== undefined;
}

const createsVolumes = ({ storageClass }: UnboundClaim): boolean =>
  storageClass !== undefined && storageClass.provisioner !== NO_PROVISIONER;

/**
 * Explains the claims that keep the Pod from being scheduled; undefined if none is known. `lacksVolume`: whether the scheduler found no
 * volume for a claim whose binding waits for the scheduler.
 */
export function unboundFinding(subject: Living, lacksVolume: boolean): UnboundFinding | undefined {
  const candidates = (subject.unboundClaims ?? []).filter((each) =>
    lacksVolume ? waitsForPod(each) && !createsVolumes(each) : !waitsForPod(each),
  );
  // A class that is not known, for example because the user may not read StorageClasses, may create volumes. So claims whose class is known
  // to create none are preferred.
  const certain = candidates.filter(({ storageClass }) => storageClass !== undefined);
  const unbound = lacksVolume && certain.length > 0 ? certain : candidates;
  if (unbound.length === 0) return undefined;
  const causes = unbound.map((each) => ({ name: each.claim.metadata.name, cause: causeOf(each, lacksVolume) }));
  return {
    cause: causes
      .map(
        ({ name, cause }) => `its PersistentVolumeClaim ${name} is not bound${cause ? `, because ${cause.why}` : ''}`,
      )
      .join('; '),
    evidence: unbound.flatMap(({ claim, events }) =>
      eventLine(newest(events), subject).map((line) => `PersistentVolumeClaim ${claim.metadata.name}: ${line}`),
    ),
    actions: causes.map(({ name, cause }) =>
      (cause?.action ?? seeClaim('see why the claim is not bound'))(name, subject),
    ),
  };
}

const newest = (events: readonly CoreV1Event[]): CoreV1Event | undefined =>
  eventOf({ events }, REASONS) ?? eventOf({ events }, ['WaitForFirstConsumer']);
