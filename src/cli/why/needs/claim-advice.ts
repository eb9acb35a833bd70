/**
 * Advises on messages about PersistentVolumeClaims: of the scheduler (src/scheduling/volume-claims.ts) and of the node
 * (src/node/volumes/claim.ts). Pure.
 */
import { claimNamesOf } from '../../../scheduling/volume-claims.ts';
import { isReachable } from '../../../scheduling/volume-search.ts';
import { type Action, type Advice, conditionOf, eventOf, type Living, listed, oneLine } from '../subject.ts';
import { claimTemplate, replacePod } from './claim-template.ts';
import type { Finding, Needing } from './objects.ts';

export const NO_VOLUME = /available persistent volumes/;
export const VOLUME_CONFLICT = /volume node affinity/;
export const UNBOUND = /unbound immediate PersistentVolumeClaims/;
/** Matches the message about a claim that has the name that an ephemeral volume needs, but another owner or none. */
const FOREIGN = /PVC [^/ ]+\/(\S+) was not created for pod/;

const DELETED = 'see which Pod still uses the claim (Used By); after this Pod has been deleted, create the claim again';
const DELETED_FROM_TEMPLATE =
  'see which Pod still uses the claim (Used By); after this Pod has been deleted, a controller creates the claim again';

/** Patterns for the scheduler's message, each with actions. */
export const CLAIM_ADVICE: readonly [RegExp, ...Advice[]][] = [
  // This pattern precedes that of node affinity, which would also match the message.
  [VOLUME_CONFLICT, aboutDistantVolumes],
  [NO_VOLUME, aboutClaims('create a PersistentVolume that fits the claim: see what it requests')],
  [
    /ReadWriteOncePod/,
    () => ({
      description: 'another Pod uses the claim: delete that Pod, or use a claim with the access mode ReadWriteOnce',
    }),
  ],
  [/persistentvolumeclaim ".*" is being deleted/, aboutClaims(DELETED, DELETED_FROM_TEMPLATE)],
  [
    /bound to non-existent persistentvolume/,
    aboutClaims(
      'its volume has been deleted: delete the claim and create it again',
      'its volume has been deleted: delete the claim, which is then created again',
    ),
  ],
  [/persistentvolumeclaim ".*" not found/, (subject) => missingClaim(subject, claimOf(subject))],
  [/waiting for ephemeral volume controller/, awaitedClaim],
  [
    FOREIGN,
    (subject) => deleteForeign(subject, claimOf(subject)),
    (subject) => renameVolume(subject, claimOf(subject)),
  ],
  [UNBOUND, aboutClaims('see why a claim is not bound')],
];

/** Names the volumes that a node cannot use; the claims if the volumes are not known. */
function aboutDistantVolumes(subject: Living): Action {
  const { boundVolumes = [], nodes, hints } = subject;
  const names = boundVolumes
    .filter((volume) =>
      nodes === undefined ? volume.spec?.nodeAffinity !== undefined : !nodes.every((node) => isReachable(volume, node)),
    )
    .map(({ metadata }) => metadata.name);
  if (names.length === 0) return aboutClaims('the volume of a claim is on another node: see which one')(subject);
  const one = names.length === 1;
  return {
    description: `the PersistentVolume${one ? '' : 's'} ${listed(names)} ${one ? 'is on another node' : 'are on other nodes'}: see which ${one ? 'one' : 'ones'} (Node Affinity)`,
    command: hints.kubectl(`describe pv ${names.join(' ')}`),
  };
}

/** Returns advice to look at the claims. `fromTemplate`: the description for a claim that a controller creates again after its deletion. */
function aboutClaims(description: string, fromTemplate = description): Advice {
  return (subject) => {
    const named = claimOf(subject);
    const claims = named === '' ? [...new Set(claimNamesOf(subject.pod))] : [named];
    const isFromTemplate = claimTemplate(subject.pod, named) !== undefined;
    return describeClaims(subject, claims, isFromTemplate ? fromTemplate : description);
  };
}

const describeClaims = ({ hints, namespace }: Needing, claims: readonly string[], description: string): Action => ({
  description,
  command: hints.kubectl(['describe pvc', ...claims, '-n', namespace].join(' ')),
});

/** Returns the claim that the scheduler's message names; an empty string if it names none. */
function claimOf(subject: Living): string {
  const message = conditionOf(subject, 'PodScheduled')?.message ?? '';
  return (/persistentvolumeclaim "([^"]+)"/.exec(message) ?? FOREIGN.exec(message))?.[1] ?? '';
}

function missingClaim({ pod, hints, namespace }: Needing, claim: string): Action {
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

function deleteForeign({ hints, namespace }: Needing, claim: string): Action {
  return {
    description: `if nothing needs the claim ${claim}, delete it: then the Pod gets a claim of its own with this name`,
    command: hints.kubectl(`delete pvc ${claim} -n ${namespace}`),
  };
}

function renameVolume({ pod }: Needing, claim: string): Action {
  const volume = claimTemplate(pod, claim)?.name ?? '';
  return {
    description: `or keep the claim, and ${replacePod(pod, `another name for its ephemeral volume ${volume}`)}`,
  };
}

const awaitClaim = ({ pod, hints, namespace }: Needing): Action => ({
  description: 'wait a moment: the claim is being created; if it is not, see why in the Events of the Pod',
  command: hints.kubectl(`describe pod ${pod.metadata.name} -n ${namespace}`),
});

/** Patterns for the node's messages about a claim, each with a clause about the claim and its actions. */
const ON_NODE: readonly [RegExp, string, (about: Needing, claim: string) => Action[]][] = [
  [
    /pod is not owner/,
    'was not created for the Pod',
    (about, claim) => [deleteForeign(about, claim), renameVolume(about, claim)],
  ],
  [
    /PVC is not bound/,
    'is not bound',
    (about, claim) => [
      describeClaims(about, [claim], 'see why the claim is not bound'),
      {
        description:
          'if it waits for its first consumer, recreate the Pod with a nodeSelector in place of its nodeName, because only the scheduler starts the binding of such a claim',
      },
    ],
  ],
  [
    /PVC is being deleted/,
    'is being deleted',
    (about, claim) => [
      describeClaims(about, [claim], claimTemplate(about.pod, claim) === undefined ? DELETED : DELETED_FROM_TEMPLATE),
    ],
  ],
  [
    /failed to fetch PVC from API server: persistentvolumeclaims ".*" not found/,
    'does not exist',
    (about, claim) => [
      claimTemplate(about.pod, claim)?.kind === 'ephemeral volume' ? awaitClaim(about) : missingClaim(about, claim),
    ],
  ],
];

/** Explains the node's message about a claim that it cannot mount; undefined for other messages. */
export function unmountableClaim(about: Needing, text: string): Finding | undefined {
  const [, claim, problem] = /error processing PVC [^/ ]+\/([^ :]+): (.*)$/.exec(text) ?? [];
  if (claim === undefined || problem === undefined) return undefined;
  const found = ON_NODE.find(([pattern]) => pattern.test(problem));
  if (found === undefined) return undefined;
  const [, clause, actions] = found;
  return { cause: `needs the PersistentVolumeClaim ${claim}, which ${clause}`, actions: actions(about, claim) };
}
