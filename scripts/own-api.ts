/**
 * The types and fields that lifepod adds to the Kubernetes API, and the fields that it excludes. generate-api.ts merges them into the
 * models.
 * Source: the specification of defer containers; k8s.io/api of v1.33.
 */

/** The shapes of generate-api.ts that lifepod's own fields use. */
type OwnShape =
  | 'string'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'time'
  | 'microtime'
  | { ref: string }
  | { array: 'string' | { ref: string } }
  | { map: 'quantity' };

export interface OwnField {
  shape: OwnShape;
  required?: true;
  description: string;
}

export interface OwnType {
  /** Whether the type is a kind with apiVersion, kind and metadata. */
  kind?: true;
  /** The type whose fields this type inherits. */
  extends?: string;
  /** Inherited fields that are forbidden: validation rejects them by name, and OpenAPI and `kubectl explain` omit them. */
  unlisted?: readonly string[];
  description: string;
  fields: Record<string, OwnField>;
}

/** Fields of a Pod's spec that configure its defer containers. The annotation defer-settings contains the same fields. */
const DEFER_SETTINGS: Record<string, OwnField> = {
  postExitGracePeriodSeconds: {
    shape: 'integer',
    description:
      'The part of the grace period, in seconds, that is reserved for PostExit entries and therefore not available to PreExit entries and app containers. Defaults to half of the grace period, or, if every PostExit entry has timeoutSeconds and the result is smaller, to the sum of timeoutSeconds + 2 over these entries. Therefore, a single PostExit entry without timeoutSeconds halves the time that app containers have to stop. Without PostExit entries, the value is 0.',
  },
  preStopPolicy: {
    shape: 'string',
    description:
      'When preStop hooks start. Concurrent: all hooks start together with the first PreExit entry, when the termination begins. AfterPreExit: hooks of app containers start once the last PreExit entry has ended, the hook of a sidecar starts when the sidecar is stopped. Defaults to Concurrent.',
  },
  deferContainerGracePeriodExtension: {
    shape: 'boolean',
    description:
      'Whether a stage continues past its deadline as long as the livenessProbe of the running defer container succeeds.',
  },
  deferContainerGracePeriodExtensionInterval: {
    shape: 'integer',
    description:
      'The number of seconds by which a stage is extended if its deadline passes while its defer containers are still due. Requires deferContainerGracePeriodExtensionCount.',
  },
  deferContainerGracePeriodExtensionCount: {
    shape: 'integer',
    description:
      'The maximum number of times that deferContainerGracePeriodExtensionInterval is granted, over both stages together.',
  },
  prePullDeferImages: {
    shape: 'boolean',
    description:
      'Whether the images of the defer containers are pulled as soon as the Pod is running. Defaults to true.',
  },
};

export const OWN_TYPES: Readonly<Record<string, OwnType>> = {
  DeferContainer: {
    extends: 'Container',
    unlisted: ['lifecycle', 'readinessProbe', 'startupProbe'],
    description:
      'A container that runs during the termination of the Pod, like a destructor. readinessProbe, startupProbe and lifecycle are not allowed.',
    fields: {
      image: {
        shape: 'string',
        description:
          'The name of the image. Exactly one of image and imageFrom must be set. May be changed until the Pod is terminating.',
      },
      imagePullPolicy: {
        shape: 'string',
        description:
          'Always, IfNotPresent or Never. Defaults to Always for the tag latest, and to IfNotPresent for any other tag and for imageFrom.',
      },
      restartPolicy: {
        shape: 'string',
        description:
          'What happens after the entry fails. Never (default): the next entry runs. OnFailure: the entry is restarted, with a back-off of 1 s that doubles up to 10 s, until it succeeds or until its timeoutSeconds or the time of its stage has passed. Always: the same as OnFailure; exit code 0 ends the entry.',
      },
      livenessProbe: {
        shape: { ref: 'Probe' },
        description:
          'A periodic probe of the running entry. The entry fails when the probe fails. With deferContainerGracePeriodExtension, a successful probe extends the time of the stage.',
      },
      terminationMessagePolicy: {
        shape: 'string',
        description:
          'The source of the termination message. FallbackToLogsOnError (default): the file terminationMessagePath, or the end of the log if the file is empty and the entry failed. File: only the file.',
      },
      trigger: {
        shape: 'string',
        description:
          'When the entry runs. PreExit: before the app containers are stopped. PostExit: after all processes of the app containers have ended. All PreExit entries must precede all PostExit entries in the list. Defaults to PreExit.',
      },
      imageFrom: {
        shape: 'string',
        description:
          "The name of an app or init container. The entry runs that container's image, as specified when the turn of the entry comes. Exactly one of image and imageFrom must be set.",
      },
      onReasons: {
        shape: { array: 'string' },
        description:
          'The termination reasons for which the entry runs: Deleted, ScaledDown, Replaced, OwnerDeleted, Evicted, Preempted, DeadlineExceeded, NodeShutdown, NodePressure, Completed. For any other reason the entry is Skipped. If absent, the entry runs for all reasons.',
      },
      when: {
        shape: 'string',
        description:
          'The outcome of the app containers after which the entry runs. Succeeded: all app containers exited with code 0. Failed: at least one exited with another code or never ran. Sidecars are not considered. Only allowed for PostExit entries. Defaults to Always.',
      },
      failurePolicy: {
        shape: 'string',
        description:
          'The effect of a failure of the entry on a Pod that completed on its own. Ignore: none. FailPod: the phase becomes Failed, with the reason DeferContainerFailed. Defaults to Ignore.',
      },
      timeoutSeconds: {
        shape: 'integer',
        description:
          'The time limit for the entry including all restarts, in seconds from the start of its turn. When it has passed, the entry is stopped and counts as failed. Without it, only the time of the stage limits the entry.',
      },
    },
  },
  DeferSettings: {
    description: 'The annotation pod.alpha.kubernetes.io/defer-settings of a Pod: fields of its spec in JSON.',
    fields: DEFER_SETTINGS,
  },
  PodTermination: {
    description: 'The reason and the deadlines of the termination of a Pod with defer containers.',
    fields: {
      reason: {
        shape: 'string',
        required: true,
        description:
          'Why the Pod terminates: Deleted, ScaledDown, Replaced, OwnerDeleted, Evicted, Preempted, DeadlineExceeded, NodeShutdown, NodePressure, or Completed if its app containers ended on their own.',
      },
      requested: { shape: 'boolean', description: 'Whether a client deleted the Pod for that reason.' },
      startedAt: { shape: 'microtime', required: true, description: 'When the termination of the Pod began.' },
      deadline: {
        shape: 'microtime',
        required: true,
        description:
          'When all remaining containers are stopped. They are killed 2 seconds later, and no further entry starts.',
      },
      preExitDeadline: {
        shape: 'microtime',
        description:
          'When the PreExit stage ends and a running PreExit entry is stopped. The time between this and the deadline is reserved for PostExit entries.',
      },
      extendedSeconds: {
        shape: 'number',
        description: 'The total time by which extensions have lengthened the grace period, in seconds.',
      },
      extendedStage: {
        shape: 'string',
        description: 'The stage that was extended most recently: PreExit or PostExit.',
      },
      outageSeconds: {
        shape: 'number',
        description:
          'The total time, in seconds, by which the deadline was postponed because no agent was running or the runtime did not respond.',
      },
      outagesCountedUntil: {
        shape: 'microtime',
        description: 'The time up to which outages are included in the deadlines.',
      },
      deletionGracePeriodSeconds: {
        shape: 'integer',
        description: 'The grace period of the delete request that the deadlines are based on, in seconds.',
      },
      nodeGracePeriodSeconds: {
        shape: 'integer',
        description: 'The time that the node granted to the Pod and that the deadlines are based on, in seconds.',
      },
      turn: {
        shape: { ref: 'DeferTurn' },
        description: 'The entry whose turn it is.',
      },
      skip: {
        shape: { array: 'string' },
        description:
          'The entries skipped by request. An entry that has not started is not run, a running entry is stopped.',
      },
      containers: {
        shape: { array: { ref: 'TerminatedContainer' } },
        description: 'The init and app containers that have ended, and their results.',
      },
    },
  },
  DeferTurn: {
    description: 'The turn of an entry of the list of defer containers.',
    fields: {
      entry: { shape: 'string', required: true, description: 'The name of the entry.' },
      since: {
        shape: 'microtime',
        required: true,
        description: 'When the turn of the entry came. The timeoutSeconds of the entry count from this time.',
      },
    },
  },
  TerminatedContainer: {
    description: 'The result of an init or app container of a terminating Pod.',
    fields: {
      name: { shape: 'string', required: true, description: 'The name of the container.' },
      kind: { shape: 'string', required: true, description: 'init or app.' },
      exitCode: { shape: 'integer', required: true, description: 'The exit code of the last run.' },
      reason: { shape: 'string', description: 'Why the container ended, such as Completed, Error or OOMKilled.' },
      signal: {
        shape: 'integer',
        description: 'The signal that ended the container, if the exit code indicates a signal.',
      },
      finishedAt: { shape: 'time', description: 'When the container ended.' },
      restartCount: {
        shape: 'integer',
        required: true,
        description: 'The number of restarts before the container ended.',
      },
    },
  },
  DeferControl: {
    kind: true,
    description: "A client's request to control the defer containers of a terminating Pod.",
    fields: {
      skip: {
        shape: 'string',
        required: true,
        description:
          'The name of the entry to skip. An entry that has not started is not run, a running entry is stopped.',
      },
    },
  },
};

/** Fields that lifepod adds to types of Kubernetes. */
export const OWN_FIELDS: Readonly<Record<string, Record<string, OwnField>>> = {
  PodSpec: {
    deferContainers: {
      shape: { array: { ref: 'DeferContainer' } },
      description:
        'Containers that run one after another, in order, during the termination of the Pod, within its grace period: PreExit entries run alongside the app containers, then the app containers are stopped, then PostExit entries run. preStop hooks start together with the first PreExit entry, unless preStopPolicy is AfterPreExit. A part of the grace period is reserved for PostExit entries: see postExitGracePeriodSeconds. The failure of an entry never restarts the Pod; if its failurePolicy is FailPod, it makes a Pod that completed on its own fail. Names must be unique among all containers of the Pod. On an existing Pod only the images may be changed.',
    },
    ...DEFER_SETTINGS,
  },
  PodStatus: {
    deferContainerStatuses: {
      shape: { array: { ref: 'ContainerStatus' } },
      description:
        'The state of each defer container: waiting with the reason PodRunning before the termination, waiting with the reason PendingDefer until its turn comes, and terminated with the reason Skipped if it was not supposed to run or the node had no time to run it.',
    },
    termination: { shape: { ref: 'PodTermination' }, description: 'The termination of the Pod, once it has begun.' },
  },
};

/** Descriptions, by `Type.field`, of Kubernetes fields that have a wider meaning in lifepod. */
export const OWN_DESCRIPTIONS: Readonly<Record<string, string>> = {
  'DownwardAPIVolumeFile.fieldRef':
    'Selects a field of the Pod: metadata.annotations, metadata.labels, metadata.name, metadata.namespace or metadata.uid; in a Pod with defer containers also status.termination.reason, status.termination.deadline, status.termination.containers or status.termination.exitCodes, which are empty until the Pod terminates.',
  'EnvVarSource.fieldRef':
    "Selects a field of the Pod: metadata.name, metadata.namespace, metadata.uid, metadata.labels['<KEY>'], metadata.annotations['<KEY>'], spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP or status.podIPs; in a defer container also status.termination.reason, status.termination.deadline, status.termination.containers or status.termination.exitCodes.",
  'PodStatus.phase':
    'The phase of the Pod. Pending: the Pod is accepted, but not all of its init containers have ended or not all images are pulled. Running: the Pod is bound to a node, all of its containers were created, and at least one is running, starting or restarting. Terminating: its defer containers are due or running; only Pods with deferContainers have this phase, and the engine can be configured to show the previous phase instead. Succeeded: all app containers have ended with exit code 0 and will not be restarted. Failed: all app containers have ended and at least one of them failed, or a defer container with failurePolicy FailPod failed. Unknown: the node cannot be reached.',
};

/** Fields of the models, by type, that are newer than Kubernetes v1.33, the served version. lifepod treats them as unknown fields. */
export const NEWER_FIELDS: Readonly<Record<string, readonly string[]>> = {
  Container: ['restartPolicyRules'],
  EphemeralContainer: ['restartPolicyRules'],
  EnvVarSource: ['fileKeyRef'],
  ListMeta: ['shardInfo'],
  NodeStatus: ['declaredFeatures'],
  PodSpec: ['hostnameOverride', 'schedulingGroup'],
  PodStatus: ['allocatedResources', 'extendedResourceClaimStatus', 'nodeAllocatableResourceClaimStatuses', 'resources'],
  ResourceHealth: ['message'],
  VolumeMountStatus: ['volumeStatus'],
  VolumeProjection: ['podCertificate'],
};
