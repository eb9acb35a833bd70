/** Advises on the scheduler's messages about PersistentVolumeClaims, which src/scheduling/volume-claims.ts writes. Pure. */
import { claimNamesOf } from '../../../scheduling/volume-claims.ts';
import { type Action, type Advice, conditionOf, eventOf, type Living, oneLine } from '../subject.ts';
import { claimTemplate, replacePod } from './claim-template.ts';

export const NO_VOLUME = /available persistent volumes/;
export const UNBOUND = /unbound immediate PersistentVolumeClaims/;
/** A claim has the name that an ephemeral volume needs, but another owner or none. */
const FOREIGN = /PVC [^/ ]+\/(\S+) was not created for pod/;

/** Patterns for the scheduler's message, each with actions. */
export const CLAIM_ADVICE: readonly [RegExp, ...Advice[]][] = [
  // This pattern precedes that of node affinity, which would also match the message.
  [/volume node affinity/, aboutClaims('the volume of a claim is on another node: see which one')],
  [NO_VOLUME, aboutClaims('create a PersistentVolume that fits the claim: see what it requests')],
  [
    /ReadWriteOncePod/,
    () => ({
      description: 'another Pod uses the claim: delete that Pod, or use a claim with the access mode ReadWriteOnce',
    }),
  ],
  [
    /persistentvolumeclaim ".*" is being deleted/,
    aboutClaims(
      'see which Pod still uses the claim (Used By), and create it again when it is gone',
      'see which Pod still uses the claim (Used By): when it is gone, it is created again',
    ),
  ],
  [
    /bound to non-existent persistentvolume/,
    aboutClaims(
      'its volume has been deleted: delete the claim and create it again',
      'its volume has been deleted: delete the claim, which is then created again',
    ),
  ],
  [/persistentvolumeclaim ".*" not found/, missingClaim],
  [/waiting for ephemeral volume controller/, awaitedClaim],
  [FOREIGN, deleteForeign, renameVolume],
  [UNBOUND, aboutClaims('see why a claim is not bound')],
];

/** `fromTemplate`: the description for a claim that a controller creates again. */
function aboutClaims(description: string, fromTemplate = description): Advice {
  return (subject) => {
    const named = claimOf(subject);
    const claims = named === '' ? [...new Set(claimNamesOf(subject.pod))] : [named];
    return {
      description: claimTemplate(subject.pod, named) === undefined ? description : fromTemplate,
      command: subject.hints.kubectl(['describe pvc', ...claims, '-n', subject.namespace].join(' ')),
    };
  };
}

/** Returns the claim that the scheduler's message names; an empty string if it names none. */
function claimOf(subject: Living): string {
  const message = conditionOf(subject, 'PodScheduled')?.message ?? '';
  return (/persistentvolumeclaim "([^"]+)"/.exec(message) ?? FOREIGN.exec(message))?.[1] ?? '';
}

function missingClaim(subject: Living): Action {
  const { pod, hints, namespace } = subject;
  const claim = claimOf(subject);
  const template = claimTemplate(pod, claim);
  if (template?.kind === 'StatefulSet')
    return {
      description: `the StatefulSet ${template.name} creates the claim ${claim}: see in its Events why it does not`,
      command: hints.kubectl(`describe statefulset ${template.name} -n ${namespace}`),
    };
  return {
    description: `create the PersistentVolumeClaim ${claim}, or recreate the Pod with the claimName of one that exists; see which ones exist`,
    command: hints.kubectl(`get pvc -n ${namespace}`),
  };
}

function awaitedClaim(subject: Living): Action {
  const prefix = `create PVC ${claimOf(subject)}: `;
  const message = oneLine(eventOf(subject, ['FailedBinding'])?.message);
  const start = message.indexOf(prefix);
  if (start === -1) return { description: 'wait a moment: the claim is being created' };
  return {
    description: `remove what prevents the creation of the claim, which is retried automatically: ${message.slice(start + prefix.length)}`,
  };
}

function deleteForeign(subject: Living): Action {
  const { hints, namespace } = subject;
  const claim = claimOf(subject);
  return {
    description: `if nothing needs the claim ${claim}, delete it: then the Pod gets a claim of its own with this name`,
    command: hints.kubectl(`delete pvc ${claim} -n ${namespace}`),
  };
}

function renameVolume(subject: Living): Action {
  const volume = claimTemplate(subject.pod, claimOf(subject))?.name ?? '';
  return {
    description: `or keep the claim, and ${replacePod(subject.pod, `another name for its ephemeral volume ${volume}`)}`,
  };
}
