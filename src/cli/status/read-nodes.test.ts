import { expect, test } from 'vitest';
import type { Node } from '../../api/generated/types.ts';
import { formatTime } from '../../machinery/time.ts';
import { nodeTroubles } from './read-nodes.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const START = NOW - 12_000;

const nodeOf = (status: 'True' | 'False' | 'Unknown', reportedAt: number): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  status: {
    conditions: [
      { type: 'MemoryPressure', status: 'False', reason: 'r', message: 'm' },
      {
        type: 'Ready',
        status,
        reason: 'KubeletNotReady',
        message: 'node is shutting down',
        lastHeartbeatTime: formatTime(reportedAt),
        lastTransitionTime: formatTime(reportedAt),
      },
    ],
  },
});
const SHUTDOWN = ['node n is not ready: node is shutting down'];
const STARTS = ['node n is starting: it has not reported its state since lifepod started 12s ago'];

test.each<[string, Node, string, string[]]>([
  ['has shut down before the engine started', nodeOf('False', START - 60_000), 'n', STARTS],
  ['shuts down now', nodeOf('False', START + 5000), 'n', SHUTDOWN],
  ['has reported in the second of the start', nodeOf('False', START), 'n', SHUTDOWN],
  ['is that of another engine', nodeOf('False', START - 60_000), 'other', SHUTDOWN],
  ['does not answer', nodeOf('Unknown', START - 60_000), 'n', ['node n does not answer: node is shutting down']],
  ['was ready before the engine started', nodeOf('True', START - 60_000), 'n', STARTS],
  ['is ready', nodeOf('True', START + 5000), 'n', []],
])('lifepod status reports a node that %s', (_, node, nodeName, messages) => {
  const troubles = nodeTroubles(node, { nodeName, startedAt: START, now: NOW });
  expect(troubles.map(({ message }) => message)).toEqual(messages);
});

test('without an engine on this machine, lifepod status reports what the Node says', () => {
  expect(nodeTroubles(nodeOf('False', START - 60_000)).map(({ message }) => message)).toEqual(SHUTDOWN);
});

test('lifepod status shortens the message about a runtime that is down, and says what to do', () => {
  const message =
    'container runtime is down: rpc error: code = Unavailable desc = No connection established. Last error: Error: connect ENOENT /run/c.sock';
  const node = nodeOf('False', NOW);
  Object.assign(node.status?.conditions?.[1] ?? {}, { message });
  const engine = { nodeName: 'n', startedAt: START, now: NOW };
  const short = 'node n is not ready: container runtime is down: connect ENOENT /run/c.sock';
  const messagesWith = (runtimeEndpoint?: string) =>
    nodeTroubles(node, { ...engine, runtimeEndpoint }).map((trouble) => trouble.message);
  expect(messagesWith('unix:///run/c.sock')).toEqual([`${short}; start it`]);
  // lifepod restarts its private containerd itself.
  expect(messagesWith()).toEqual([short]);
});

test('lifepod status does not advise the start of a runtime that runs but does not answer', () => {
  const message = 'container runtime is down: it has not answered for 30 s';
  const node = nodeOf('False', NOW);
  Object.assign(node.status?.conditions?.[1] ?? {}, { message });
  const engine = {
    nodeName: 'n',
    startedAt: START,
    now: NOW,
    runtimeEndpoint: 'unix:///run/containerd/containerd.sock',
  };
  expect(nodeTroubles(node, engine).map((trouble) => trouble.message)).toEqual([`node n is not ready: ${message}`]);
});
