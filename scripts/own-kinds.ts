/** Kinds for which client-node has no models: lifepod's PodRecord, and the kinds of the resource metrics API. */
import type { OwnField, OwnType } from './own-api.ts';

export const RECORD_TYPES: Readonly<Record<string, OwnType>> = {
  PodRecord: {
    kind: true,
    description:
      'A part of the record of a life of a Pod: the steps of the life in order. It outlives the Pod and its namespace. Only lifepod writes it.',
    fields: {
      podName: { shape: 'string', required: true, description: 'The name of the Pod.' },
      podUID: { shape: 'string', required: true, description: 'The UID of the Pod. A record describes a single life.' },
      transitions: {
        shape: { array: { ref: 'PodTransition' } },
        required: true,
        description:
          'The steps, in the order in which the node learned about them. Sort them by time for the order of events.',
      },
    },
  },
  PodTransition: {
    description: 'A step in the life of a Pod.',
    fields: {
      key: {
        shape: 'string',
        required: true,
        description: 'The identity of the step. The same step always has the same key and is recorded once.',
      },
      at: { shape: 'microtime', required: true, description: 'When the step happened.' },
      type: {
        shape: 'string',
        required: true,
        description:
          'What happened: Scheduled, SandboxReady, Pulling, Pulled, Started, Exited, DeadlineSet, Gone and others.',
      },
      container: {
        shape: 'string',
        description: 'The container that the step is about; absent if the step is about the Pod.',
      },
      containerKind: { shape: 'string', description: 'init, app, defer or ephemeral.' },
      attempt: { shape: 'integer', description: 'The run of the container or the sandbox of the Pod, counted from 0.' },
      exitCode: { shape: 'integer', description: 'The exit code, for a container that exited.' },
      reason: { shape: 'string', description: 'The reason as a single word.' },
      message: { shape: 'string', description: 'The reason in human-readable form.' },
      deadline: {
        shape: 'microtime',
        description:
          'The end of the period that the step starts: the deadline of the termination, the kill after a stop signal, the next attempt after a back-off.',
      },
    },
  },
};

const MEASURED: Record<string, OwnField> = {
  timestamp: { shape: 'time', required: true, description: 'The end of the measured interval.' },
  window: { shape: 'string', required: true, description: 'The length of the measured interval, such as 15s.' },
};

/** The types of the resource metrics API. Source: metrics.k8s.io/v1beta1 of v1.33. */
export const METRICS_TYPES: Readonly<Record<string, OwnType>> = {
  NodeMetrics: {
    kind: true,
    description: 'The resource usage of a node, including everything that runs on it.',
    fields: {
      ...MEASURED,
      usage: { shape: { map: 'quantity' }, required: true, description: 'The usage of cpu and memory.' },
    },
  },
  PodMetrics: {
    kind: true,
    description: 'The resource usage of the running containers of a Pod.',
    fields: {
      ...MEASURED,
      containers: {
        shape: { array: { ref: 'ContainerMetrics' } },
        required: true,
        description: 'The running containers.',
      },
    },
  },
  ContainerMetrics: {
    description: 'The resource usage of a container.',
    fields: {
      name: { shape: 'string', required: true, description: 'The name of the container, as in the spec of its Pod.' },
      usage: { shape: { map: 'quantity' }, required: true, description: 'The usage of cpu and memory.' },
    },
  },
};
