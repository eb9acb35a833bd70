import { condition, explains, of, running, until } from '../explain-fixtures.ts';

const SIZE_LIMIT = 'Usage of EmptyDir volume "v" exceeds the limit "5Mi". ';
const CONTAINERS = 'Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ';
const SHORTAGE = 'The node was low on resource: memory. Threshold quantity: 1.5Gi, available: 90Mi. ';

type Steps = NonNullable<Parameters<typeof explains>[0][string]['steps']>;
const BEGUN: Steps = [
  [60, 'Started', of('app')],
  [8.09, 'TerminationBegan', { reason: 'NodePressure', ...until(-8.09) }],
  [8.09, 'DeadlineSet', until(-8.09)],
];
const gone = (message: string): Steps => [
  ...BEGUN,
  [6.1, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
  [6, 'Finished', { reason: 'Failed', message: `Evicted: ${message}` }],
  [4, 'Gone'],
];

explains({
  'a gone Pod that its node had evicted for the sizeLimit of its volume': {
    gone: true,
    steps: gone(SIZE_LIMIT),
    sentence:
      'p has been gone since 11:59:56 UTC: its node evicted it, because its volume v exceeded its sizeLimit of 5Mi, and its termination took 2.09s.',
    evidence: [`the message of its eviction: ${SIZE_LIMIT.trim()}`, 'container app: exit code 137 (Error)'],
    advice: /^for later Pods, raise the sizeLimit of the volume v, or write less to it\nsee its life: /,
  },
  'a gone Pod that its node had evicted for the limit of its container': {
    gone: true,
    steps: gone(CONTAINERS),
    sentence:
      /: its node evicted it, because it wrote more to the disk than the ephemeral-storage limit of its container app, 10Mi, and its termination /,
    advice: /^for later Pods, raise the ephemeral-storage limit of its container app, or write less\n/,
  },
  'a gone Pod that its node had evicted for the limits of its containers': {
    gone: true,
    steps: [...gone(CONTAINERS), [60, 'Started', of('b')]],
    sentence:
      /: its node evicted it, because it wrote more to the disk than the ephemeral-storage limits of its containers, 10Mi in total, and its termination took /,
    advice: /^for later Pods, raise the ephemeral-storage limits of its containers, or write less\n/,
  },
  'a gone Pod that its node had evicted because of pressure': {
    gone: true,
    steps: gone(SHORTAGE),
    sentence: /: its node evicted it, because the node was low on memory, and its termination took 2\.09s\.$/,
    evidence: [`the message of its eviction: ${SHORTAGE.trim()}`, 'container app: exit code 137 (Error)'],
    advice: /^see its life: /,
  },
  'a Pod that was deleted while its node evicted it, so that its record has no message': {
    gone: true,
    steps: [...BEGUN, [6, 'Finished', { reason: 'Failed' }], [6, 'Gone']],
    sentence: /: its node evicted it, and its termination took 2\.09s\.$/,
  },
  'a Pod that is being evicted for a limit of its own': {
    status: { phase: 'Running', conditions: [condition('Ready', 'False')], containerStatuses: [running('app')] },
    events: [['Evicted', SIZE_LIMIT]],
    steps: [...BEGUN, [8.09, 'StopSignal', { ...of('app'), ...until(-6.09) }]],
    sentence: /^p has not ended yet: /,
    evidence: [
      'its termination began 8.09s ago: Evicted by its node',
      'it was not deleted: its object stays when it has ended',
      `Event Evicted, 1.00s ago: ${SIZE_LIMIT.trim()}`,
      'stop signal sent 8.09s ago',
      'the kernel ignores SIGTERM for a PID 1 that installs no handler for it',
    ],
  },
});
