/**
 * Describes the types and fields that lifepod adds to the Kubernetes API (src/api/facts/own.ts), and fields of Kubernetes that have a wider
 * meaning in lifepod.
 * Source: the specification of defer containers; the documentation of metrics.k8s.io/v1beta1.
 */

export interface Descriptions {
  /** Absent for a type of Kubernetes. */
  description?: string;
  fields: Readonly<Record<string, string>>;
}

export const OWN_DESCRIPTIONS: Readonly<Record<string, Descriptions>> = {
  'io.k8s.api.core.v1.DeferContainer': {
    description:
      'A container that runs during the termination of the Pod, like a destructor. readinessProbe, startupProbe and lifecycle are not allowed.',
    fields: {
      image:
        'The name of the image. Exactly one of image and imageFrom must be set. May be changed until the Pod is terminating.',
      imagePullPolicy:
        'Always, IfNotPresent or Never. Defaults to Always for the tag latest, and to IfNotPresent for any other tag and for imageFrom.',
      restartPolicy:
        'What happens after the entry fails. Never (default): the next entry runs. OnFailure: the entry is restarted, with a back-off of 1 s that doubles up to 10 s, until it succeeds or until its timeoutSeconds or the time of its stage has passed. Always: the same as OnFailure; exit code 0 ends the entry.',
      livenessProbe:
        'A periodic probe of the running entry. The entry fails when the probe fails: it then has terminationGracePeriodSeconds of the probe to stop, or 2 s if that is not set, whatever the grace period of the Pod. With deferContainerGracePeriodExtension, a successful probe extends the time of the stage.',
      terminationMessagePolicy:
        'The source of the termination message. FallbackToLogsOnError (default): the file terminationMessagePath, or the end of the log if the file is empty and the entry failed. File: only the file.',
      trigger:
        'When the entry runs. PreExit: before the app containers are stopped. PostExit: after all processes of the app containers have ended. All PreExit entries must precede all PostExit entries in the list. Defaults to PreExit.',
      imageFrom:
        "The name of an app or init container. The entry runs that container's image, as specified when the turn of the entry comes. Exactly one of image and imageFrom must be set.",
      onReasons:
        'The termination reasons for which the entry runs: Deleted, ScaledDown, Replaced, OwnerDeleted, Evicted, Preempted, DeadlineExceeded, NodeShutdown, NodePressure, Completed. For any other reason the entry is Skipped. If absent, the entry runs for all reasons.',
      when: 'The outcome of the app containers after which the entry runs. Succeeded: all app containers exited with code 0. Failed: at least one exited with another code or never ran. Sidecars are not considered. Only allowed for PostExit entries. Defaults to Always.',
      failurePolicy:
        'The effect of a failure of the entry on a Pod that completed on its own. Ignore: none. FailPod: the phase becomes Failed, with the reason DeferContainerFailed. Defaults to Ignore.',
      timeoutSeconds:
        'The time limit for the entry including all restarts, in seconds from the start of its turn. When it has passed, the entry is stopped and counts as failed. Without it, only the time of the stage limits the entry.',
    },
  },
  'io.k8s.api.core.v1.DeferSettings': {
    description: 'The annotation pod.alpha.kubernetes.io/defer-settings of a Pod: fields of its spec in JSON.',
    fields: {
      postExitGracePeriodSeconds:
        'The part of the grace period, in seconds, that is reserved for PostExit entries and therefore not available to PreExit entries and app containers. Defaults to half of the grace period, or, if every PostExit entry has timeoutSeconds and the result is smaller, to the sum of timeoutSeconds + 2 over these entries. Therefore, a single PostExit entry without timeoutSeconds halves the time that app containers have to stop. Without PostExit entries, the value is 0. This time counts from the exit of the last app container or PreExit entry, even if it then ends after the grace period.',
      preStopPolicy:
        'When preStop hooks start. Concurrent: all hooks start together with the first PreExit entry, when the termination begins. AfterPreExit: hooks of app containers start once the last PreExit entry has ended, the hook of a sidecar starts when the sidecar is stopped. Defaults to Concurrent.',
      deferContainerGracePeriodExtension:
        'Whether a stage continues past its deadline as long as the livenessProbe of the running defer container succeeds.',
      deferContainerGracePeriodExtensionInterval:
        'The number of seconds by which a stage is extended if its deadline passes while its defer containers are still due. Requires deferContainerGracePeriodExtensionCount.',
      deferContainerGracePeriodExtensionCount:
        'The maximum number of times that deferContainerGracePeriodExtensionInterval is granted, over both stages together.',
      prePullDeferImages:
        'Whether the images of the defer containers are pulled as soon as the Pod is running. Defaults to true.',
    },
  },
  'io.k8s.api.core.v1.PodTermination': {
    description: 'The reason and the deadlines of the termination of a Pod with defer containers.',
    fields: {
      reason:
        'Why the Pod terminates: Deleted, ScaledDown, Replaced, OwnerDeleted, Evicted, Preempted, DeadlineExceeded, NodeShutdown, NodePressure, or Completed if its app containers ended on their own.',
      requested: 'Whether a client deleted the Pod for that reason.',
      startedAt: 'When the termination of the Pod began.',
      deadline:
        'When all remaining containers are stopped. They are killed 2 seconds later, and no further entry starts.',
      preExitDeadline:
        'When the PreExit stage ends and a running PreExit entry is stopped. The time between this and the deadline is reserved for PostExit entries.',
      extendedSeconds: 'The total time by which extensions have lengthened the grace period, in seconds.',
      extendedStage: 'The stage that was extended most recently: PreExit or PostExit.',
      outageSeconds:
        'The total time, in seconds, by which the deadline was postponed because no agent was running or the runtime did not respond.',
      outagesCountedUntil: 'The time up to which outages are included in the deadlines.',
      deletionGracePeriodSeconds: 'The grace period of the delete request that the deadlines are based on, in seconds.',
      nodeGracePeriodSeconds:
        'The time that the node granted to the Pod and that the deadlines are based on, in seconds.',
      turn: 'The entry whose turn it is.',
      skip: 'The entries skipped by request. An entry that has not started is not run, a running entry is stopped.',
      containers: 'The init and app containers that have ended, and their results.',
    },
  },
  'io.k8s.api.core.v1.DeferTurn': {
    description: 'The turn of an entry of the list of defer containers.',
    fields: {
      entry: 'The name of the entry.',
      since: 'When the turn of the entry came. The timeoutSeconds of the entry count from this time.',
    },
  },
  'io.k8s.api.core.v1.TerminatedContainer': {
    description: 'The result of an init or app container of a terminating Pod.',
    fields: {
      name: 'The name of the container.',
      kind: 'init or app.',
      exitCode: 'The exit code of the last run.',
      reason: 'Why the container ended, such as Completed, Error or OOMKilled.',
      signal: 'The signal that ended the container, if the exit code indicates a signal.',
      finishedAt: 'When the container ended.',
      restartCount: 'The number of restarts before the container ended.',
    },
  },
  'io.lifepod.v1.DeferControl': {
    description: "A client's request to control the defer containers of a terminating Pod.",
    fields: {
      skip: 'The name of the entry to skip. An entry that has not started is not run, a running entry is stopped.',
    },
  },
  'io.lifepod.v1.PodRecord': {
    description:
      'A part of the record of a life of a Pod: the steps of the life in order. It outlives the Pod and its namespace. Only lifepod writes it.',
    fields: {
      podName: 'The name of the Pod.',
      podUID: 'The UID of the Pod. A record describes a single life.',
      nodeName: 'The node of the Pod, which writes the record. Absent if the Pod never had a node.',
      transitions:
        'The steps, in the order in which the node learned about them. Sort them by time for the order of events.',
    },
  },
  'io.lifepod.v1.PodTransition': {
    description: 'A step in the life of a Pod.',
    fields: {
      key: 'The identity of the step. The same step always has the same key and is recorded once.',
      at: 'When the step happened.',
      type: 'What happened: Scheduled, SandboxReady, Pulling, Pulled, Started, Exited, DeadlineSet, Gone and others.',
      container: 'The container that the step is about; absent if the step is about the Pod.',
      containerKind: 'init, app, defer or ephemeral.',
      attempt: 'The run of the container or the sandbox of the Pod, counted from 0.',
      exitCode: 'The exit code, for a container that exited.',
      reason: 'The reason as a single word.',
      message: 'The reason in human-readable form.',
      deadline:
        'The end of the period that the step starts: the deadline of the termination, the kill after a stop signal, the next attempt after a back-off.',
    },
  },
  'io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics': {
    description: 'The resource usage of a node, including everything that runs on it.',
    fields: {
      timestamp: 'The end of the measured interval.',
      window: 'The length of the measured interval, such as 15s.',
      usage: 'The usage of cpu and memory.',
    },
  },
  'io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics': {
    description: 'The resource usage of the running containers of a Pod.',
    fields: {
      timestamp: 'The end of the measured interval.',
      window: 'The length of the measured interval, such as 15s.',
      containers: 'The running containers.',
    },
  },
  'io.k8s.metrics.pkg.apis.metrics.v1beta1.ContainerMetrics': {
    description: 'The resource usage of a container.',
    fields: {
      name: 'The name of the container, as in the spec of its Pod.',
      usage: 'The usage of cpu and memory.',
    },
  },
  'io.k8s.api.core.v1.PodSpec': {
    fields: {
      deferContainers:
        'Containers that run one after another, in order, during the termination of the Pod, within its grace period: PreExit entries run alongside the app containers, then the app containers are stopped, then PostExit entries run. preStop hooks start together with the first PreExit entry, unless preStopPolicy is AfterPreExit. A part of the grace period is reserved for PostExit entries: see postExitGracePeriodSeconds. The failure of an entry never restarts the Pod; if its failurePolicy is FailPod, it makes a Pod that completed on its own fail. Names must be unique among all containers of the Pod. On an existing Pod only the images may be changed.',
    },
  },
  'io.k8s.api.core.v1.PodStatus': {
    fields: {
      deferContainerStatuses:
        'The state of each defer container: waiting with the reason PodRunning before the termination, waiting with the reason PendingDefer until its turn comes, and terminated with the reason Skipped if it was not supposed to run or the node had no time to run it.',
      termination: 'The termination of the Pod, once it has begun.',
      phase:
        'The phase of the Pod. Pending: the Pod is accepted, but not all of its init containers have ended or not all images are pulled. Running: the Pod is bound to a node, all of its containers were created, and at least one is running, starting or restarting. Terminating: its defer containers are due or running; only Pods with deferContainers have this phase, and the engine can be configured to show the previous phase instead. Succeeded: all app containers have ended with exit code 0 and will not be restarted. Failed: all app containers have ended and at least one of them failed, or a defer container with failurePolicy FailPod failed. Unknown: the node cannot be reached.',
    },
  },
  'io.k8s.api.core.v1.DownwardAPIVolumeFile': {
    fields: {
      fieldRef:
        'Selects a field of the Pod: metadata.annotations, metadata.labels, metadata.name, metadata.namespace or metadata.uid; in a Pod with defer containers also status.termination.reason, status.termination.deadline, status.termination.containers or status.termination.exitCodes, which are empty until the Pod terminates.',
    },
  },
  'io.k8s.api.core.v1.EnvVarSource': {
    fields: {
      fieldRef:
        "Selects a field of the Pod: metadata.name, metadata.namespace, metadata.uid, metadata.labels['<KEY>'], metadata.annotations['<KEY>'], spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP or status.podIPs; in a defer container also status.termination.reason, status.termination.deadline, status.termination.containers or status.termination.exitCodes.",
    },
  },
};
