/** Reconciles a claim: finds or provisions its volume and completes the binding. Source: persistentvolume controller of v1.33. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts';
import { defined } from '../../machinery/drop-undefined.ts';
import { isApiError } from '../../machinery/status.ts';
import {
  BIND_COMPLETED,
  isBound,
  NO_PROVISIONER,
  SELECTED_NODE,
  volumeMismatch,
} from '../../scheduling/volume-claims.ts';
import {
  BOUND_BY_CONTROLLER,
  claimReference,
  LOCAL_PATH_PROVISIONER,
  localVolume,
  volumeNameFor,
} from './local-path.ts';
import { readNow, type Storage } from './storage.ts';

/** Ignores a claim that is being deleted. Rejects with Conflict after a concurrent change. */
export async function reconcileClaim(storage: Storage, claim: PersistentVolumeClaim): Promise<void> {
  if (claim.metadata.deletionTimestamp !== undefined) return;
  if (isBound(claim)) return keepBound(storage, claim);
  const named = claim.spec?.volumeName ?? '';
  if (named !== '') {
    const volume = storage.volumes.get(undefined, named);
    if (volume !== undefined && isFree(volume, claim) && suits(storage, volume, claim))
      await bind(storage, volume, claim);
    return;
  }
  const className = claim.spec?.storageClassName ?? '';
  const storageClass = className === '' ? undefined : storage.classes.get(undefined, className);
  const selected = claim.metadata.annotations?.[SELECTED_NODE];
  if (storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && selected === undefined) {
    const message = 'waiting for first consumer to be created before binding';
    storage.events.event(claim, 'Normal', 'WaitForFirstConsumer', message);
    return;
  }
  const node = selected === undefined ? undefined : storage.nodes.get(undefined, selected);
  const volume = storage.search.on(node)(claim);
  if (volume !== undefined) await bind(storage, volume, claim);
  else await provision(storage, claim, className, storageClass);
}

const isFree = ({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean =>
  spec?.claimRef === undefined ||
  (spec.claimRef.namespace === metadata.namespace &&
    spec.claimRef.name === metadata.name &&
    (!spec.claimRef.uid || spec.claimRef.uid === metadata.uid));

/** Whether the volume fits the claim. A volume that is reserved for the claim always fits. Reports a mismatch as an Event. */
function suits({ events }: Storage, volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const mismatch = volume.spec?.claimRef === undefined ? volumeMismatch(volume, claim) : undefined;
  if (mismatch === undefined) return true;
  const message = `Cannot bind to requested volume ${JSON.stringify(volume.metadata.name)}: ${mismatch}`;
  events.event(claim, 'Warning', 'VolumeMismatch', message);
  return false;
}

async function provision(
  storage: Storage,
  claim: PersistentVolumeClaim,
  className: string,
  storageClass: StorageClass | undefined,
): Promise<void> {
  const { events, folders } = storage;
  if (className === '') {
    const message = 'no persistent volumes available for this claim and no storage class is set';
    events.event(claim, 'Normal', 'FailedBinding', message);
    return;
  }
  const fail = (message: string): void => events.event(claim, 'Warning', 'ProvisioningFailed', message);
  if (storageClass === undefined) {
    return fail(`storageclass.storage.k8s.io ${JSON.stringify(className)} not found`);
  }
  const { provisioner } = storageClass;
  if (provisioner === NO_PROVISIONER) return fail(`no volume plugin matched name: ${provisioner}`);
  if (provisioner !== LOCAL_PATH_PROVISIONER) {
    const message = `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`;
    events.event(claim, 'Normal', 'ExternalProvisioning', message);
    return;
  }
  const failed = (cause: string): void =>
    fail(`failed to provision volume with StorageClass ${JSON.stringify(className)}: ${cause}`);
  if (claim.spec?.volumeMode === 'Block') return failed('block volumes are not supported');
  const node = claim.metadata.annotations?.[SELECTED_NODE] ?? folders.nodeName;
  if (node !== folders.nodeName) return failed(`the node ${node} has no folder for volumes`);
  const { namespace, name } = claim.metadata;
  events.event(
    claim,
    'Normal',
    'Provisioning',
    `External provisioner is provisioning volume for claim ${JSON.stringify(`${namespace}/${name}`)}`,
  );
  const volumeName = volumeNameFor(claim);
  await folders.create(volumeName).catch((error: Error) => {
    failed(error.message);
    throw error;
  });
  try {
    await storage.volumeClient.create(localVolume(claim, storageClass, folders));
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
  events.event(claim, 'Normal', 'ProvisioningSucceeded', `Successfully provisioned volume ${volumeName}`);
}

/** Binds the claim to the volume. The volume is written first, so that a bound claim always has a reserved volume. */
async function bind(storage: Storage, found: PersistentVolume, claim: PersistentVolumeClaim): Promise<void> {
  const { volumeClient, claimClient } = storage;
  let volume = found;
  if (volume.spec?.claimRef?.uid !== claim.metadata.uid) {
    const annotations =
      volume.spec?.claimRef === undefined
        ? { ...volume.metadata.annotations, [BOUND_BY_CONTROLLER]: 'yes' }
        : volume.metadata.annotations;
    volume = await volumeClient.update({
      ...volume,
      metadata: { ...volume.metadata, ...defined({ annotations }) },
      spec: { ...volume.spec, claimRef: claimReference(claim) },
    });
  }
  if (volume.status?.phase !== 'Bound') {
    volume = await volumeClient.updateStatus({ ...volume, status: { phase: 'Bound' } });
  }
  const chosen = (claim.spec?.volumeName ?? '') === '';
  const written = await claimClient.update({
    ...claim,
    metadata: {
      ...claim.metadata,
      annotations: {
        ...claim.metadata.annotations,
        [BIND_COMPLETED]: 'yes',
        ...(chosen ? { [BOUND_BY_CONTROLLER]: 'yes' } : {}),
      },
    },
    spec: { ...claim.spec, volumeName: volume.metadata.name },
  });
  await showBound(storage, written, volume);
}

async function showBound(
  { claimClient }: Storage,
  claim: PersistentVolumeClaim,
  { spec = {} }: PersistentVolume,
): Promise<void> {
  const status = {
    phase: 'Bound',
    accessModes: [...(spec.accessModes ?? [])],
    capacity: { ...spec.capacity },
  };
  await claimClient.updateStatus({ ...claim, status });
}

/**
 * Repairs the status of a bound claim and the reservation of its volume. The claim becomes Lost if the volume is missing or reserved for
 * another claim.
 */
async function keepBound(storage: Storage, claim: PersistentVolumeClaim): Promise<void> {
  const name = claim.spec?.volumeName ?? '';
  const volume = storage.volumes.get(undefined, name) ?? (await readNow(storage.volumeClient, name));
  if (volume !== undefined && isFree(volume, claim)) {
    if (volume.spec?.claimRef?.uid !== claim.metadata.uid) {
      // The volume is not reserved for the claim's UID: a client may have created the claim with the annotation of a bound claim.
      if (suits(storage, volume, claim)) await bind(storage, volume, claim);
      return;
    }
    if (claim.status?.phase !== 'Bound') await showBound(storage, claim, volume);
    return;
  }
  if (claim.status?.phase === 'Lost') return;
  const [reason, message] =
    volume === undefined
      ? ['ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!']
      : ['ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly'];
  await storage.claimClient.updateStatus({ ...claim, status: { phase: 'Lost' } });
  storage.events.event(claim, 'Warning', reason, message);
}
