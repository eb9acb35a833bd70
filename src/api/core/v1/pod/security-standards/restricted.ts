/**
 * The controls that the level restricted adds to the controls of baseline.
 * Source: k8s.io/pod-security-admission/policy of v1.33 (behavior and wording).
 */
import type { Volume } from '../../../../generated/types.ts';
import { seccompProfiles } from './baseline.ts';
import {
  type Check,
  type Control,
  forbidInContainers,
  forbidInContexts,
  plural,
  quoted,
  requireInContexts,
  sortedOnce,
  violationBy,
} from './control.ts';

const VOLUME_TYPES: readonly (keyof Volume)[] = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

/** The types that messages name. Upstream calls every other type `unknown`. */
const NAMED_VOLUME_TYPES: readonly (keyof Volume)[] = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
];

const volumeTypes: Check = ({ spec }) => {
  const forbidden = (spec.volumes ?? []).filter((volume) => !VOLUME_TYPES.some((type) => volume[type] !== undefined));
  const names = forbidden.map(({ name }) => name);
  const typeOf = (volume: Volume): string => NAMED_VOLUME_TYPES.find((type) => volume[type] !== undefined) ?? 'unknown';
  const types = sortedOnce(forbidden.map(typeOf));
  const volumes = `${plural(names.length, 'volume', 'volumes')} ${quoted(names)} ${plural(names.length, 'uses', 'use')}`;
  const detail = `${volumes} ${plural(types.length, 'restricted volume type', 'restricted volume types')} ${quoted(types)}`;
  return violationBy('restricted volume types', names, detail);
};

/** Windows does not support the fields that `check` requires. */
const exceptOnWindows =
  (check: Check): Check =>
  (pod) =>
    pod.spec.os?.name === 'windows' ? undefined : check(pod);

const allowPrivilegeEscalation = forbidInContainers(
  'allowPrivilegeEscalation != false',
  ({ securityContext }) => (securityContext?.allowPrivilegeEscalation === false ? [] : ['true']),
  () => 'must set securityContext.allowPrivilegeEscalation=false',
);

const CAPABILITIES = 'unrestricted capabilities';
const droppedCapabilities = forbidInContainers(
  CAPABILITIES,
  ({ securityContext }) => (securityContext?.capabilities?.drop?.includes('ALL') ? [] : ['kept']),
  () => 'must set securityContext.capabilities.drop=["ALL"]',
);
const addedCapabilities = forbidInContainers(
  CAPABILITIES,
  ({ securityContext }) => (securityContext?.capabilities?.add ?? []).filter((name) => name !== 'NET_BIND_SERVICE'),
  (names) => `must not include ${quoted(names)} in securityContext.capabilities.add`,
);
const capabilities: Check = (pod) => {
  const details = [droppedCapabilities(pod), addedCapabilities(pod)].flatMap((found) => found?.detail ?? []);
  return violationBy(CAPABILITIES, details, details.join('; '));
};

const ROOT = 'runAsNonRoot != true';
const runAsNonRoot = requireInContexts(
  ROOT,
  (context) => context.runAsNonRoot !== undefined,
  'securityContext.runAsNonRoot=true',
  forbidInContexts(
    ROOT,
    (context) => (context.runAsNonRoot === false ? ['false'] : []),
    () => 'must not set securityContext.runAsNonRoot=false',
  ),
);

const seccomp = requireInContexts(
  'seccompProfile',
  ({ seccompProfile }) => seccompProfile !== undefined,
  'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
  seccompProfiles,
);

/** The controls are sorted by id. */
export const restrictedControls: readonly Control[] = [
  {
    id: 'allowPrivilegeEscalation',
    versions: [
      { since: 8, check: allowPrivilegeEscalation },
      { since: 25, check: exceptOnWindows(allowPrivilegeEscalation) },
    ],
  },
  {
    id: 'capabilities_restricted',
    versions: [
      { since: 22, check: capabilities, replaces: 'capabilities_baseline' },
      { since: 25, check: exceptOnWindows(capabilities), replaces: 'capabilities_baseline' },
    ],
  },
  { id: 'restrictedVolumes', versions: [{ since: 0, check: volumeTypes, replaces: 'hostPathVolumes' }] },
  { id: 'runAsNonRoot', versions: [{ since: 0, check: runAsNonRoot }] },
  {
    id: 'runAsUser',
    versions: [
      {
        since: 23,
        check: forbidInContexts(
          'runAsUser=0',
          ({ runAsUser }) => (runAsUser === 0 ? ['0'] : []),
          () => 'must not set runAsUser=0',
        ),
      },
    ],
  },
  {
    id: 'seccompProfile_restricted',
    versions: [
      { since: 19, check: seccomp, replaces: 'seccompProfile_baseline' },
      { since: 25, check: exceptOnWindows(seccomp), replaces: 'seccompProfile_baseline' },
    ],
  },
];
