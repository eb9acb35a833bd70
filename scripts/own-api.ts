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
  description: string;
  fields: Record<string, OwnField>;
}

/** The fields of a Pod that go with its defer containers; the annotation defer-settings holds the same. */
const DEFER_SETTINGS: Record<string, OwnField> = {
  postExitGracePeriodSeconds: {
    shape: 'integer',
    description:
      'The part of the grace period that is reserved for PostExit entries, in seconds. By default half of it, or what the timeoutSeconds of these entries add up to where each has one and that is less.',
  },
  preStopPolicy: {
    shape: 'string',
    description:
      'When the preStop hooks of app containers start. Concurrent: beside the first PreExit entry, without waiting. AfterPreExit: once the last PreExit entry has ended. Defaults to Concurrent.',
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
    description:
      'A container that runs while its Pod ends: a destructor. It may have neither readinessProbe, startupProbe nor lifecycle.',
    fields: {
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
        shape: 'integer',
        description: 'How much longer than the grace period the extensions have made it, in seconds.',
      },
      outageSeconds: {
        shape: 'number',
        description: 'How much later the deadline is because neither the agent nor the runtime answered, in seconds.',
      },
      outagesCountedUntil: {
        shape: 'microtime',
        description: 'Until when outages are counted in the deadlines.',
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
        'Containers that run one after the other, in order, while the Pod ends, within its grace period. Their failure neither restarts the Pod nor changes its phase. Names are unique among all containers of the Pod. On an existing Pod only their images may change.',
    },
    ...DEFER_SETTINGS,
  },
  PodStatus: {
    deferContainerStatuses: {
      shape: { array: { ref: 'ContainerStatus' } },
      description:
        'The state of each defer container. Waiting with reason PodRunning before the Pod ends, with PendingDefer until its turn comes; terminated with reason Skipped if its turn never came.',
    },
    termination: { shape: { ref: 'PodTermination' }, description: 'The end of the Pod, once it has begun.' },
  },
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
