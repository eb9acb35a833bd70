/** Builds test cases for explain(): Pods with their Events, records and logs. */
import { expect, test } from 'vitest';
import type { Container, ContainerStatus, CoreV1Event, Node, Pod, Taint } from '../../api/generated/types.ts';
import { runtimeCommands } from '../../engine/options/runtime-endpoint.ts';
import { DEFAULT_DATA_DIR, kubeconfigPath } from '../../engine/settings.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { hintsFor } from '../hints.ts';
import { explain } from './explain.ts';
import type { Living } from './subject.ts';

const HINTS = hintsFor({}, { KUBECONFIG: kubeconfigPath(DEFAULT_DATA_DIR) }, undefined, false);
const runtime = (text: string) =>
  runtimeCommands(text, (unit) => ({ start: `systemctl start ${unit}`, log: `journalctl -u ${unit}` }));
export const NOW = Date.UTC(2026, 0, 31, 12);
export const time = (secondsAgo: number): string => new Date(NOW - secondsAgo * 1000).toISOString();

export interface Case {
  /** The fields of `metadata` and `spec` override those of a Pod that is bound to a node and has one container. */
  metadata?: Partial<Pod['metadata']>;
  spec?: Partial<NonNullable<Pod['spec']>>;
  status?: Pod['status'];
  /** `lastAgo`: seconds since the Event was last repeated, 1 by default; `firstAgo`: since the first failure. */
  events?: [reason: string, message: string, container?: string, lastAgo?: number, firstAgo?: number][];
  steps?: [secondsAgo: number, type: string, more?: Partial<Transition>][];
  lines?: Record<string, string[]>;
  /** The node of the Pod, or all nodes if the Pod has none; empty if its node does not exist. If absent, Nodes cannot be read. */
  nodes?: Node[];
  otherPods?: Pod[];
  unboundClaims?: Living['unboundClaims'];
  boundVolumes?: Living['boundVolumes'];
  entryNeeds?: Living['entryNeeds'];
  manifest?: string;
  workload?: Living['workload'];
  /** The message of the node's Ready condition, which has been False for 12 s. If absent, explain() gets no node. */
  notReady?: string;
  gone?: true;
  /** How many seconds ago the node reported a restart of its machine; absent if it did not. */
  rebooted?: number;
  /** How many seconds ago the node reported its state, and its engine started after that. Absent: it has reported since. */
  unreported?: [reported: number, started: number];
  service?: true;
  sentence: string | RegExp;
  evidence?: string[];
  /** Matches the actions, one a line. */
  advice?: RegExp;
}

export const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: 'i', ...more });
export const status = (name: string, more: Partial<ContainerStatus>): ContainerStatus => ({
  name,
  image: 'i',
  imageID: 'x',
  ready: false,
  restartCount: 0,
  containerID: 'c://1',
  state: {},
  lastState: {},
  ...more,
});
export const running = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus =>
  status(name, { state: { running: { startedAt: time(20) } }, ready: true, started: true, ...more });
export const waiting = (
  name: string,
  reason: string,
  message = '',
  more: Partial<ContainerStatus> = {},
): ContainerStatus => status(name, { state: { waiting: { reason, message } }, ...more });
export const terminated = (exitCode: number, reason: string, message?: string) => ({
  terminated: { exitCode, reason, finishedAt: time(4), message },
});
export const condition = (type: string, value: string, reason = '', message = '') => ({
  type,
  status: value,
  lastTransitionTime: time(30),
  reason,
  message,
});
export const READY = [condition('Initialized', 'True'), condition('Ready', 'True')];
export const UNREADY = [
  condition('Initialized', 'True'),
  condition('Ready', 'False', 'ContainersNotReady', 'app is not'),
];
export const of = (name: string): Partial<Transition> => ({ container: name, containerKind: 'app', attempt: 0 });
export const entry = (name: string): Partial<Transition> => ({ container: name, containerKind: 'defer' });
export const until = (secondsAhead: number): Partial<Transition> => ({ deadline: NOW + secondsAhead * 1000 });
export const DOWN =
  'container runtime is down: rpc error: code = Unavailable desc = No connection established. Last error: Error: connect ENOENT /run/containerd/containerd.sock';
export const DELETED = { deletionTimestamp: time(-22), deletionGracePeriodSeconds: 30 };
export const ENDING: Case['steps'] = [
  [8, 'TerminationBegan', { reason: 'Deleted', ...until(22) }],
  [8, 'DeadlineSet', until(22)],
];
const eventOf = ([reason, message, name, lastAgo = 1, firstAgo]: NonNullable<Case['events']>[number]): CoreV1Event =>
  ({
    metadata: { name: reason },
    involvedObject: name === undefined ? {} : { fieldPath: `spec.containers{${name}}` },
    reason,
    message,
    firstTimestamp: firstAgo === undefined ? undefined : time(firstAgo),
    lastTimestamp: time(lastAgo),
  }) as CoreV1Event;

export const node = (allocatable: Record<string, string>, taints: Taint[] = []): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node' },
  spec: { taints },
  status: { allocatable, conditions: [condition('Ready', 'True', 'KubeletReady')] },
});

const unreadyNode = (message: string): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node' },
  status: {
    conditions: [{ ...condition('Ready', 'False', 'KubeletNotReady', message), lastTransitionTime: time(12) }],
  },
});

export function explains(cases: Record<string, Case>): void {
  test.each(Object.entries(cases))(
    'lifepod why explains %s',
    (_, { metadata, spec, status: own, events = [], steps = [], lines = {}, ...given }) => {
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p', namespace: 'n', ...metadata },
        spec: { nodeName: 'node', containers: [container('app')], restartPolicy: 'Always', ...spec },
        status: own ?? {},
      } as Pod;
      if (own?.containerStatuses?.some(({ name }) => name === 'b')) pod.spec?.containers.push(container('b'));
      const { sentence, evidence, actions } = explain({
        name: 'p',
        namespace: 'n',
        pod: given.gone ? undefined : pod,
        events: events.map(eventOf),
        lastLines: lines,
        node: given.notReady === undefined ? given.nodes?.[0] : unreadyNode(given.notReady),
        nodes: given.nodes,
        otherPods: given.otherPods,
        unboundClaims: given.unboundClaims,
        boundVolumes: given.boundVolumes,
        entryNeeds: given.entryNeeds,
        manifest: given.manifest,
        workload: given.workload,
        rebootedAt: given.rebooted === undefined ? undefined : NOW - given.rebooted * 1000,
        unreported: given.unreported && {
          reportedAt: NOW - given.unreported[0] * 1000,
          startedAt: NOW - given.unreported[1] * 1000,
        },
        hints: { ...HINTS, runtime, isService: given.service === true },
        now: NOW,
        transitions: steps.map(([secondsAgo, type, more], i) => ({
          key: String(i),
          at: NOW - secondsAgo * 1000,
          type,
          ...more,
        })),
      });
      if (typeof given.sentence === 'string') expect(sentence).toBe(given.sentence);
      else expect(sentence).toMatch(given.sentence);
      expect(sentence).toMatch(/^[^\n]+\.$/);
      if (given.evidence !== undefined) expect(evidence).toEqual(given.evidence);
      const advice = actions.map(({ description, command = '' }) =>
        command === '' ? description : `${description}: ${command}`,
      );
      expect(advice.join('\n')).toMatch(given.advice ?? /./);
    },
  );
}
