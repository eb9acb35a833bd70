/** Kinds beside those of Kubernetes v1.33 that client-node has: the record of a life, and the resource metrics API. */
import type { OwnField, OwnType } from './own-api.ts';

export const RECORD_TYPES: Readonly<Record<string, OwnType>> = {
  PodRecord: {
    kind: true,
    description:
      'A part of the record of one life of a Pod: what happened to it, step by step. It outlives the Pod and its namespace. Only lifepod writes it.',
    fields: {
      podName: { shape: 'string', required: true, description: 'The name of the Pod.' },
      podUID: { shape: 'string', required: true, description: 'The UID of the Pod: one record is of one life.' },
      transitions: {
        shape: { array: { ref: 'PodTransition' } },
        required: true,
        description: 'The steps, in the order in which the node learned of them; their times order them.',
      },
    },
  },
  PodTransition: {
    description: 'A step in the life of a Pod.',
    fields: {
      key: {
        shape: 'string',
        required: true,
        description: 'What the step is; the same step has the same key, and is recorded once.',
      },
      at: { shape: 'microtime', required: true, description: 'When it happened.' },
      type: {
        shape: 'string',
        required: true,
        description:
          'What happened: Scheduled, SandboxReady, Pulling, Pulled, Started, Exited, DeadlineSet, Gone and others.',
      },
      container: { shape: 'string', description: 'The container to which it happened; the Pod itself where absent.' },
      containerKind: { shape: 'string', description: 'init, app, defer or ephemeral.' },
      attempt: { shape: 'integer', description: 'Which run of the container, or which sandbox of the Pod, from 0.' },
      exitCode: { shape: 'integer', description: 'Of a container that exited.' },
      reason: { shape: 'string', description: 'Why, in a word.' },
      message: { shape: 'string', description: 'Why, for people.' },
      deadline: {
        shape: 'microtime',
        description:
          'Until when: the deadline of the termination, the kill after a stop signal, the next try after a back-off.',
      },
    },
  },
};

const MEASURED: Record<string, OwnField> = {
  timestamp: { shape: 'time', required: true, description: 'The end of the time that the figures are of.' },
  window: { shape: 'string', required: true, description: 'How long that time was, such as 15s.' },
};

/** The resource metrics API, of which client-node has no models. Source: metrics.k8s.io/v1beta1 of v1.33. */
export const METRICS_TYPES: Readonly<Record<string, OwnType>> = {
  NodeMetrics: {
    kind: true,
    description: 'What a node uses, all that runs on it together.',
    fields: {
      ...MEASURED,
      usage: { shape: { map: 'quantity' }, required: true, description: 'The usage of cpu and memory.' },
    },
  },
  PodMetrics: {
    kind: true,
    description: 'What the running containers of a Pod use.',
    fields: {
      ...MEASURED,
      containers: {
        shape: { array: { ref: 'ContainerMetrics' } },
        required: true,
        description: 'The containers that run, one by one.',
      },
    },
  },
  ContainerMetrics: {
    description: 'What a container uses.',
    fields: {
      name: { shape: 'string', required: true, description: 'The name of the container, as in the spec of its Pod.' },
      usage: { shape: { map: 'quantity' }, required: true, description: 'The usage of cpu and memory.' },
    },
  },
};
