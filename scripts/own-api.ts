/**
 * The types and fields that lifepod adds to the Kubernetes API, in the form that generate-api.ts puts in among the others,
 * and the fields that it leaves out.
 * Source: the specification of defer containers; k8s.io/api of v1.33.
 */

/** As in the generated schema. */
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
  /** It is a kind: it has apiVersion, kind and metadata. */
  kind?: true;
  /** The type whose fields it has as well. */
  extends?: string;
  /** Fields of that type that may not be given: validation refuses them by name, and no document lists them. */
  unlisted?: readonly string[];
  description: string;
  fields: Record<string, OwnField>;
}

/** The fields of a Pod that go with its defer containers; the annotation defer-settings holds the same. */
const DEFER_SETTINGS: Record<string, OwnField> = {
  postExitGracePeriodSeconds: {
    shape: 'integer',
    description:
      'The part of the grace period that is reserved for PostExit entries, in seconds. It is taken from the time that PreExit entries and app containers have. By default it is half of the grace period, or, where every PostExit entry has timeoutSeconds and that is less, the sum of timeoutSeconds + 2 over these entries: one PostExit entry without timeoutSeconds halves the time that the app containers have to stop. 0 without PostExit entries.',
  },
  preStopPolicy: {
    shape: 'string',
    description:
      'When preStop hooks start. Concurrent: all together with the first PreExit entry, when the termination begins. AfterPreExit: those of app containers once the last PreExit entry has ended, that of a sidecar when the sidecar stops. Defaults to Concurrent.',
  },
  deferContainerGracePeriodExtension: {
    shape: 'boolean',
    description:
      'Whether a stage whose time has passed goes on while the livenessProbe of the defer container that runs succeeds.',
  },
  deferContainerGracePeriodExtensionInterval: {
    shape: 'integer',
    description:
      'By how many seconds a stage is extended when its time passes while its defer containers are due. Needs deferContainerGracePeriodExtensionCount.',
  },
  deferContainerGracePeriodExtensionCount: {
    shape: 'integer',
    description: 'How often deferContainerGracePeriodExtensionInterval is granted at most, over both stages together.',
  },
  prePullDeferImages: {
    shape: 'boolean',
    description: 'Whether the images of the defer containers are pulled as soon as the Pod runs. Defaults to true.',
  },
};

export const OWN_TYPES: Readonly<Record<string, OwnType>> = {
  DeferContainer: {
    extends: 'Container',
    unlisted: ['lifecycle', 'readinessProbe', 'startupProbe'],
    description:
      'A container that runs while its Pod ends: a destructor. It may have neither readinessProbe, startupProbe nor lifecycle.',
    fields: {
      image: {
        shape: 'string',
        description:
          'The name of the image. Exactly one of image and imageFrom is given. It may be changed until the Pod is terminating.',
      },
      imagePullPolicy: {
        shape: 'string',
        description:
          'Always, IfNotPresent or Never. Defaults to Always for the tag latest, and to IfNotPresent for any other tag and for imageFrom.',
      },
      restartPolicy: {
        shape: 'string',
        description:
          'What follows a failure of the entry. Never (default): the next entry has its turn. OnFailure: the entry is run again, with a back-off of 1 s that doubles up to 10 s, until it succeeds, or until its timeoutSeconds or the time of its stage has passed. Always: the same as OnFailure; exit code 0 ends the entry.',
      },
      livenessProbe: {
        shape: { ref: 'Probe' },
        description:
          'A periodic probe of the entry while it runs. The entry fails when the probe does. With deferContainerGracePeriodExtension its success extends the time of the stage.',
      },
      terminationMessagePolicy: {
        shape: 'string',
        description:
          'Where the message of the status comes from. FallbackToLogsOnError (default): from the file terminationMessagePath, or from the end of the log where the file is empty and the entry failed. File: from the file alone.',
      },
      trigger: {
        shape: 'string',
        description:
          'When the entry runs. PreExit: before the app containers are told to stop. PostExit: once no process of an app container is left. Every PreExit entry stands before every PostExit entry. Defaults to PreExit.',
      },
      imageFrom: {
        shape: 'string',
        description:
          'The name of an app or init container whose image the entry runs, as it is when the turn of the entry comes. Exactly one of image and imageFrom is given.',
      },
      onReasons: {
        shape: { array: 'string' },
        description:
          'The reasons of a termination for which the entry runs: Deleted, ScaledDown, Replaced, OwnerDeleted, Evicted, Preempted, DeadlineExceeded, NodeShutdown, NodePressure, Completed. For any other reason the entry ends as Skipped. Absent: every reason.',
      },
      when: {
        shape: 'string',
        description:
          'Which outcome of the app containers the entry runs after. Succeeded: every one exited with 0. Failed: one did not, or never ran. Sidecars do not count. Only for PostExit entries. Defaults to Always.',
      },
      failurePolicy: {
        shape: 'string',
        description:
          'What the failure of the entry means for a Pod that completed by itself. Ignore: nothing. FailPod: the phase is Failed, with the reason DeferContainerFailed. Defaults to Ignore.',
      },
      timeoutSeconds: {
        shape: 'integer',
        description:
          'How long the entry may take with all its attempts, in seconds from the moment its turn comes; then it is told to stop, and counts as failed. By default the time of its stage alone bounds it.',
      },
    },
  },
  DeferSettings: {
    description: 'The annotation pod.alpha.kubernetes.io/defer-settings of a Pod: fields of its spec.',
    fields: DEFER_SETTINGS,
  },
  PodTermination: {
    description: 'Why and until when a Pod with defer containers ends.',
    fields: {
      reason: {
        shape: 'string',
        required: true,
        description:
          'Why the Pod ends: Deleted, ScaledDown, Replaced, OwnerDeleted, Evicted, Preempted, DeadlineExceeded, NodeShutdown, NodePressure, or Completed where its app containers ended by themselves.',
      },
      requested: { shape: 'boolean', description: 'Whether a client deleted the Pod for that reason.' },
      startedAt: { shape: 'microtime', required: true, description: 'When the end of the Pod began.' },
      deadline: {
        shape: 'microtime',
        required: true,
        description:
          'When what still runs is told to stop; 2 seconds later it is killed, and no entry starts any more.',
      },
      preExitDeadline: {
        shape: 'microtime',
        description:
          'When the PreExit stage ends: the running PreExit entry is told to stop. The time from then to the deadline is reserved for PostExit entries.',
      },
      extendedSeconds: {
        shape: 'number',
        description: 'How much longer than the grace period the extensions have made it, in seconds.',
      },
      extendedStage: {
        shape: 'string',
        description: 'The stage that was extended last: PreExit or PostExit.',
      },
      outageSeconds: {
        shape: 'number',
        description:
          'How much later the deadline is because of times in which no agent ran or the runtime did not answer, in seconds.',
      },
      outagesCountedUntil: {
        shape: 'microtime',
        description: 'Until when outages are counted in the deadlines.',
      },
      deletionGracePeriodSeconds: {
        shape: 'integer',
        description: 'The grace period of the delete that is counted in the deadlines, in seconds.',
      },
      nodeGracePeriodSeconds: {
        shape: 'integer',
        description: 'The time that the node left to the Pod and that is counted in the deadlines, in seconds.',
      },
      turn: {
        shape: { ref: 'DeferTurn' },
        description: 'The entry whose turn it is.',
      },
      skip: {
        shape: { array: 'string' },
        description: 'The entries that were given up by request: their turn is skipped, a running one is told to stop.',
      },
      containers: {
        shape: { array: { ref: 'TerminatedContainer' } },
        description: 'The init and app containers that have ended, and how.',
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
        description: 'When its turn came; its timeoutSeconds counts from then.',
      },
    },
  },
  TerminatedContainer: {
    description: 'How an init or app container of an ending Pod ended.',
    fields: {
      name: { shape: 'string', required: true, description: 'The name of the container.' },
      kind: { shape: 'string', required: true, description: 'init or app.' },
      exitCode: { shape: 'integer', required: true, description: 'The exit code of its last run.' },
      reason: { shape: 'string', description: 'Why it ended, such as Completed, Error or OOMKilled.' },
      signal: { shape: 'integer', description: 'The signal that ended it, if its exit code names one.' },
      finishedAt: { shape: 'time', description: 'When it ended.' },
      restartCount: { shape: 'integer', required: true, description: 'How often it had been restarted.' },
    },
  },
  DeferControl: {
    kind: true,
    description: 'What a client asks of the list of defer containers of a terminating Pod.',
    fields: {
      skip: {
        shape: 'string',
        required: true,
        description: 'The name of the entry to give up: its turn is skipped, or it is told to stop where it runs.',
      },
    },
  },
};

/** Fields of types of Kubernetes. */
export const OWN_FIELDS: Readonly<Record<string, Record<string, OwnField>>> = {
  PodSpec: {
    deferContainers: {
      shape: { array: { ref: 'DeferContainer' } },
      description:
        'Containers that run one after the other, in order, while the Pod ends, within its grace period: PreExit entries beside the app containers, then the app containers stop, then PostExit entries run. preStop hooks start together with the first PreExit entry, unless preStopPolicy is AfterPreExit. A part of the grace period is reserved for PostExit entries: see postExitGracePeriodSeconds. The failure of an entry never restarts the Pod; it makes a Pod fail that completed by itself if its failurePolicy is FailPod. Names are unique among all containers of the Pod. On an existing Pod only the images may change.',
    },
    ...DEFER_SETTINGS,
  },
  PodStatus: {
    deferContainerStatuses: {
      shape: { array: { ref: 'ContainerStatus' } },
      description:
        'The state of each defer container. Waiting with reason PodRunning before the Pod ends, with PendingDefer until its turn comes; terminated with reason Skipped if it was not to run, or was cut off because the node had no time.',
    },
    termination: { shape: { ref: 'PodTermination' }, description: 'The end of the Pod, once it has begun.' },
  },
};

/** Descriptions of fields of Kubernetes of which lifepod has more to say. Keyed by `Type.field`. */
export const OWN_DESCRIPTIONS: Readonly<Record<string, string>> = {
  'DownwardAPIVolumeFile.fieldRef':
    'Selects a field of the Pod: metadata.annotations, metadata.labels, metadata.name, metadata.namespace or metadata.uid; in a Pod with defer containers also status.termination.reason, status.termination.deadline, status.termination.containers or status.termination.exitCodes, which are empty until the Pod terminates.',
  'EnvVarSource.fieldRef':
    "Selects a field of the Pod: metadata.name, metadata.namespace, metadata.uid, metadata.labels['<KEY>'], metadata.annotations['<KEY>'], spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP or status.podIPs; in a defer container also status.termination.reason, status.termination.deadline, status.termination.containers or status.termination.exitCodes.",
  'PodStatus.phase':
    'Where the Pod is in its life. Pending: it is accepted, and not all of its init containers have ended or images are pulled. Running: it is bound to a node, all of its containers were created, and at least one runs, starts or restarts. Terminating: its defer containers are due or run; only Pods with deferContainers have this phase, and an engine may be set to show the phase before it instead. Succeeded: all app containers have ended with exit code 0 and will not be restarted. Failed: all app containers have ended and at least one of them failed, or a defer container with failurePolicy FailPod did. Unknown: the node cannot be reached.',
};

/** Fields of the models that came after Kubernetes v1.33, whose API this is: to it they are unknown. */
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
