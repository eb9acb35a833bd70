/** Describes the differences between ReplicaSets and ReplicationControllers. The same controller serves both kinds. */
import type {
  PodTemplateSpec,
  ReplicaSet,
  ReplicaSetStatus,
  ReplicationController,
} from '../../api/generated/types.ts';
import { REPLICA_SETS, REPLICATION_CONTROLLERS } from '../../api/resources.ts';
import type { LabelSelectorObject } from '../../machinery/labels.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ControllerName } from '../controller.ts';
import type { OwnerKind } from '../ownership/owner.ts';

/** A ReplicaSet or a ReplicationController. Their statuses have the same fields. */
export interface ReplicaOwner extends KubeObject {
  spec?: { replicas?: number; minReadySeconds?: number; template?: PodTemplateSpec };
  status?: ReplicaSetStatus;
}

export interface ReplicaKind {
  owner: OwnerKind;
  /** The name of the controller as a user of the API and in Events. */
  controller: ControllerName;
  selectorOf(owner: ReplicaOwner): LabelSelectorObject | undefined;
}

export const REPLICA_SET: ReplicaKind = {
  owner: { apiVersion: 'apps/v1', kind: 'ReplicaSet', resource: REPLICA_SETS },
  controller: 'replicaset-controller',
  selectorOf: (owner) => (owner as ReplicaSet).spec?.selector,
};

export const REPLICATION_CONTROLLER: ReplicaKind = {
  owner: { apiVersion: 'v1', kind: 'ReplicationController', resource: REPLICATION_CONTROLLERS },
  controller: 'replication-controller',
  selectorOf: (owner) => ({ matchLabels: (owner as ReplicationController).spec?.selector ?? {} }),
};

export const wantedReplicas = ({ spec }: ReplicaOwner): number => spec?.replicas ?? 1;
