/** Explains why PersistentVolumeClaims are not bound. Pure. */
import type { CoreV1Event, Node, PersistentVolume, PersistentVolumeClaim } from '../../../api/generated/types.ts';
import { NO_PROVISIONER, SELECTED_NODE } from '../../../scheduling/volume-claims.ts';
import { type Action, eventLine, eventOf, type Living, oneLine, type UnboundClaim } from '../subject.ts';
import { replaceClaim } from './claim-template.ts';
import { isReleased, misfit, misfits } from './unfit-volumes.ts';

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

const CREATE_VOLUME = 'create a PersistentVolume that fits the claim';
const SEE_CLASSES: Cause['action'] = (claim, { pod, hints }) => ({
  description: `create the StorageClass or, by hand, a PersistentVolume of this class, or ${replaceClaim(pod, claim, 'the storageClassName of one that exists')}; see which ones exist`,
  command: hints.kubectl('get storageclass'),
});

interface Unbound extends UnboundClaim {
  /** The nodes of which one must be able to use the volume; undefined if the claim is bound without regard to nodes. */
  nodes: readonly Node[] | undefined;
}

/** `end`: the rest of the clause that no volume fits. */
function noVolume({ claim, volumes, nodes }: Unbound, end: string, action = CREATE_VOLUME): Cause {
  const own = volumes?.filter((volume) => classOf(volume) === classOf(claim)) ?? [];
  const list = misfits(own, claim, nodes);
  const reuse = own.some(isReleased)
    ? ', or remove the spec.claimRef of one that is Released, to use it with the files that it has'
    : '';
  return {
    why: `no PersistentVolume ${end}${list && `: ${list}`}`,
    action: seeClaim(`${action}${reuse}: see what it requests`),
  };
}

const classOf = ({ spec }: PersistentVolume | PersistentVolumeClaim): string => spec?.storageClassName ?? '';

/** A claim for a volume that is created by hand may have a class that exists only as a name. */
function noClass(unbound: Unbound, name: string): Cause {
  const { claim, volumes } = unbound;
  if (volumes?.some((volume) => classOf(volume) === classOf(claim)))
    return noVolume(
      unbound,
      `of its class ${name} fits it`,
      'create a PersistentVolume of this class that fits the claim, or the StorageClass',
    );
  const none = volumes === undefined ? '' : ', and no PersistentVolume has this class';
  return { why: `its StorageClass ${name} does not exist${none}`, action: SEE_CLASSES };
}

/** Patterns for messages of Events. Source: src/controllers/persistent-volumes/claims.ts. */
const MESSAGES: readonly [RegExp, (found: RegExpExecArray, unbound: Unbound) => Cause][] = [
  [/^storageclass\.storage\.k8s\.io "(.*)" not found$/, ([, name = ''], unbound) => noClass(unbound, name)],
  [
    /^no persistent volumes available .* no storage class is set$/,
    (_, unbound) => noVolume(unbound, 'fits it, and it has no storageClassName'),
  ],
  [/^no volume plugin matched name: /, (_, unbound) => noVolume(unbound, 'fits it, and its StorageClass creates none')],
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

function causeOf(unbound: Unbound, lacksVolume: boolean): Cause | undefined {
  const { claim, events, storageClass } = unbound;
  const message = oneLine(eventOf({ events }, REASONS)?.message);
  for (const [pattern, cause] of MESSAGES) {
    const found = pattern.exec(message);
    if (found !== null) return cause(found, unbound);
  }
  const named = claim.spec?.volumeName;
  if (named) return namedVolume(unbound, named);
  if (lacksVolume)
    return noVolume(
      unbound,
      `fits it${storageClass === undefined ? '' : `, and its StorageClass ${classOf(claim)} creates none`}`,
    );
  return message === '' ? undefined : { why: message, action: seeClaim('see the claim') };
}

function namedVolume({ claim, volumes, nodes }: Unbound, name: string): Cause {
  const volume = volumes?.find(({ metadata }) => metadata.name === name);
  const phrase = volume && misfit(volume, claim, nodes);
  const isHeld = phrase !== undefined && /^is (?:bound to|reserved for) the claim /.test(phrase);
  const problem = phrase ?? `does not exist${volumes !== undefined && volume === undefined ? '' : ', or is not free'}`;
  return {
    why: `the PersistentVolume ${name} that its spec.volumeName names ${problem}`,
    action: (claim, { pod, hints }) =>
      phrase === undefined || isHeld
        ? {
            description: 'create this PersistentVolume, or delete the other claim that uses it: see whether it exists',
            command: hints.kubectl(`get pv ${name}`),
          }
        : {
            description: `change the volume, or ${replaceClaim(pod, claim, 'a spec that fits, or with the volumeName of another volume')}: see the volume`,
            command: hints.kubectl(`describe pv ${name}`),
          },
  };
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
  const causes = unbound.map((each) => ({
    name: each.claim.metadata.name,
    cause: causeOf({ ...each, nodes: waitsForPod(each) ? subject.nodes : undefined }, lacksVolume),
  }));
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
