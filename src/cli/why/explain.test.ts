import type { Node, Pod, PodSpec, TopologySpreadConstraint } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import {
  type Case,
  condition,
  container,
  entry,
  explains,
  node,
  of,
  READY,
  running,
  status,
  terminated,
  time,
  UNREADY,
  until,
  waiting,
} from './explain-fixtures.ts';

const LOSS =
  "the program of lifepod was replaced while the engine was running: type 'kill 7', which leaves its Pods running, then 'lifepod up --detach'";

/** Returns the status of a Pod that runs again. Its previous run began `secondsAgo` seconds ago, and was lost. */
const lostRun = (secondsAgo?: number) => ({
  conditions: READY,
  containerStatuses: [
    running('app', {
      state: { running: { startedAt: time(1) } },
      restartCount: 1,
      lastState: {
        terminated: {
          ...terminated(255, 'Unknown').terminated,
          ...(secondsAgo !== undefined && { startedAt: time(secondsAgo) }),
        },
      },
    }),
  ],
});

const NOT_PRESENT = 'Container image "late:2" is not present with pull policy of Never';
const BAD_NAME = `Failed to apply default image tag "Foo:1": couldn't parse image name "Foo:1": no`;
const NEVER_PULLED = `ErrImageNeverPull: ${NOT_PRESENT}`;
const NO_PROGRAM = 'exec: "hook": no such file or directory';
const NO_GRACE = 'the Pod was deleted with a grace period of 0';
const unbound = { nodeName: undefined } as object;
const withImages = (...names: string[]) => ({ ...node({}), status: { images: [{ names }] } });
const podOnPort = (
  name: string,
  hostPort: number,
  { spec, status }: { spec?: object; status?: Pod['status'] } = {},
): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a', uid: name },
  spec: { nodeName: 'node', containers: [container('app', { ports: [{ containerPort: 80, hostPort }] })], ...spec },
  status,
});
function unscheduled(message: string, advice: RegExp) {
  const text = `0/1 nodes are available: ${message}.`;
  return {
    spec: unbound,
    status: { conditions: [condition('PodScheduled', 'False', 'Unschedulable', text)] },
    sentence: `p is not scheduled: ${text}`,
    advice,
  };
}

const preempted = (name: string, metadata: object, nodeName = 'node'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a', ...metadata },
  spec: { nodeName, containers: [] },
  status: { conditions: [condition('DisruptionTarget', 'True', 'PreemptionByScheduler')] },
});

const labeled = (labels: Record<string, string>): Node => ({ ...node({}), metadata: { name: 'node', labels } });
const spread = (topologyKey: string): TopologySpreadConstraint => ({
  maxSkew: 1,
  topologyKey,
  whenUnsatisfiable: 'DoNotSchedule',
});
const near = (topologyKey: string): Partial<PodSpec> => ({
  ...unbound,
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey }] } },
});

const tainted = (taint: string, advice: RegExp): Case => ({
  spec: unbound,
  status: {
    conditions: [condition('PodScheduled', 'False', 'Unschedulable', `1 node(s) had untolerated taint {${taint}}`)],
  },
  sentence: /untolerated taint/,
  advice,
});

explains({
  'a Pod without a controller that ended when its node was shut down': {
    status: {
      phase: 'Failed',
      reason: 'Terminated',
      message: 'Pod was terminated in response to imminent node shutdown.',
      conditions: [condition('DisruptionTarget', 'True', 'TerminationByKubelet')],
    },
    sentence:
      'p has failed: Terminated, Pod was terminated in response to imminent node shutdown; it has no controller, so it does not start again by itself.',
    advice:
      /^delete it: kubectl delete pod p -n n\nthen run it again from its manifest, FILE: kubectl apply -n n -f FILE/,
  },
  'a Pod with a controller that ended when its node was shut down': {
    metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ReplicaSet', name: 'r', uid: 'u', controller: true }] },
    status: {
      phase: 'Failed',
      reason: 'Terminated',
      message: 'Pod was terminated in response to imminent node shutdown.',
      conditions: [condition('DisruptionTarget', 'True', 'TerminationByKubelet')],
    },
    sentence: 'p has failed: Terminated, Pod was terminated in response to imminent node shutdown.',
  },
  'a Pod that fits on no node': {
    spec: unbound,
    status: {
      conditions: [condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes are available: 1 Insufficient cpu.')],
    },
    events: [['FailedScheduling', '0/1 nodes are available: 1 Insufficient cpu.']],
    sentence: 'p is not scheduled: 0/1 nodes are available: 1 Insufficient cpu.',
    evidence: [
      'condition PodScheduled is False (Unschedulable): 0/1 nodes are available: 1 Insufficient cpu.',
      'Event FailedScheduling, 1.00s ago: 0/1 nodes are available: 1 Insufficient cpu.',
    ],
    advice: /lower the requests/,
  },
  'a Pod that has preempted others': {
    spec: unbound,
    status: {
      nominatedNodeName: 'node',
      conditions: [condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes are available: 1 Insufficient cpu.')],
    },
    otherPods: [
      preempted('soon', { deletionTimestamp: time(-5) }),
      preempted('late', { deletionTimestamp: time(-12) }),
      preempted('elsewhere', { deletionTimestamp: time(-30) }, 'other'),
      preempted('stays', {}),
      { ...preempted('kept', { deletionTimestamp: time(-30) }), status: { phase: 'Succeeded' } },
    ],
    sentence:
      'p is not scheduled yet: it waits for the end of the Pods a/late and a/soon on node node; deadline 12:00:12 UTC (in 12.0s).',
    advice: /^wait: it is then scheduled automatically\nsee why late has not ended yet: lifepod why late -n a$/,
  },
  'a Pod that waits for many Pods, which are not terminated for it alone': {
    spec: unbound,
    status: {
      nominatedNodeName: 'node',
      conditions: [condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes are available: 1 Insufficient cpu.')],
    },
    otherPods: [9, 8, 7, 6, 5].map((seconds) => ({
      ...preempted(`p${seconds}`, { deletionTimestamp: time(-seconds) }),
      status: {},
    })),
    sentence:
      'p is not scheduled yet: it waits for the end of the Pods a/p9, a/p8, a/p7 and 2 others on node node; deadline 12:00:09 UTC (in 9.00s).',
  },
  'a Pod that has preempted others, which are not known': {
    spec: unbound,
    status: {
      nominatedNodeName: 'node',
      conditions: [condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes are available: 1 Insufficient cpu.')],
    },
    sentence: 'p is not scheduled yet: it waits for room on node node, which the scheduler has chosen for it.',
    advice: /\nsee which Pods are on the node: kubectl get pods -A --field-selector spec.nodeName=node$/,
  },
  'a claim that does not exist': unscheduled(
    'persistentvolumeclaim "data" not found',
    /^create the PersistentVolumeClaim data, .*: kubectl get pvc -n n$/,
  ),
  'a claim that is being deleted': unscheduled(
    'persistentvolumeclaim "data" is being deleted',
    /after this Pod has been deleted, create the claim again: kubectl describe pvc data -n n$/,
  ),
  'claims that are not bound': unscheduled(
    'pod has unbound immediate PersistentVolumeClaims',
    /^see why a claim is not bound: kubectl describe pvc -n n$/,
  ),
  'a volume of another node': unscheduled(
    '1 node(s) had volume node affinity conflict',
    /on another node: .*: kubectl describe pvc -n n$/,
  ),
  'a taint that the Pod does not tolerate': tainted('a: b', /toleration.*: kubectl taint node NODE a-$/),
  'a node with disk pressure': tainted(
    'node.kubernetes.io/disk-pressure: ',
    /^free the resource .*--eviction-hard, --eviction-soft\); see which resource it is: lifepod status$/,
  ),
  'a cordoned node': tainted('node.kubernetes.io/unschedulable: ', /uncordon/),
  'a node that is not ready': tainted('node.kubernetes.io/not-ready: ', /lifepod status/),
  'scheduling gates': {
    spec: { ...unbound, schedulingGates: [{ name: 'a/b' }, { name: 'c/d' }] },
    sentence: 'p is not scheduled: its scheduling gates a/b and c/d have not been removed.',
  },
  'a scheduler that does not exist': {
    spec: { ...unbound, schedulerName: 'mine' },
    sentence: 'p is not scheduled: it requires the scheduler mine, which has not handled it.',
    advice: /default-scheduler/,
  },
  'an image of a Pod that may not be active until the next pull': {
    spec: { activeDeadlineSeconds: 60 },
    status: {
      startTime: time(50),
      conditions: UNREADY,
      containerStatuses: [waiting('app', 'ImagePullBackOff', 'not found', { containerID: '' })],
    },
    steps: [[5, 'PullFailed', { ...of('app'), ...until(15) }]],
    sentence:
      'p waits for the image i of its container app: it cannot be pulled (not found), and the pull is not repeated, because the activeDeadlineSeconds of the Pod end at 12:00:10 UTC (in 10.0s), before the next attempt.',
  },
  'an image that cannot be pulled': {
    status: {
      conditions: UNREADY,
      containerStatuses: [waiting('app', 'ImagePullBackOff', 'not found', { containerID: '' })],
    },
    steps: [
      [30, 'PullFailed', { ...of('app'), ...until(-20) }],
      [5, 'PullFailed', { ...of('app'), ...until(15) }],
    ],
    sentence:
      'p waits for the image i of its container app: it cannot be pulled (not found), the next attempt is in 15.0s.',
    evidence: ['ImagePullBackOff: not found', '2 attempts failed, the last one 5.00s ago'],
    advice: /lifepod image load/,
  },
  'the image of a volume that cannot be pulled': {
    spec: {
      containers: [{ name: 'app', image: 'busybox:1.28', imagePullPolicy: 'Always' }],
      volumes: [{ name: 'v', image: { reference: 'data:1', pullPolicy: 'IfNotPresent' } }],
    },
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting(
          'app',
          'ImagePullBackOff',
          'Back-off pulling image "data:1": ErrImagePull: failed to resolve reference "docker.io/library/data:1": not found',
          { image: '', containerID: '' },
        ),
      ],
    },
    steps: [
      [30, 'MountFailed', until(-20)],
      [5, 'MountFailed', until(15)],
    ],
    sentence:
      'p waits for the image data:1 of its volume v: it cannot be pulled (not found), the next attempt is in 15.0s.',
    evidence: [
      'ImagePullBackOff: Back-off pulling image "data:1": ErrImagePull: failed to resolve reference "docker.io/library/data:1": not found',
      '2 attempts failed, the last one 5.00s ago',
    ],
    advice:
      /^check the name, and whether the registry answers\nload it from an archive, without a registry, such as 'docker save data:1 > FILE' writes on another machine: lifepod image load FILE$/,
  },
  'the images of two volumes that cannot be pulled': {
    spec: {
      volumes: ['data:1', 'other:1'].map((reference, i) => ({ name: `v${i}`, image: { reference } })),
    },
    status: {
      conditions: UNREADY,
      containerStatuses: [waiting('app', 'ImagePullBackOff', 'Back-off pulling image "data:1"', { image: '' })],
    },
    steps: [
      [30, 'MountFailed', { ...until(-20), message: 'failed to resolve reference "docker.io/library/data:1"' }],
      [10, 'MountFailed', { ...until(-5), message: 'not found' }],
      [5, 'MountFailed', { ...until(15), message: 'failed to resolve reference "docker.io/library/other:1"' }],
    ],
    sentence: /^p waits for the image data:1 of its volume v0: it cannot be pulled/,
    evidence: ['ImagePullBackOff: Back-off pulling image "data:1"', '1 attempt failed, the last one 30.0s ago'],
  },
  'an image that the machine can make': {
    spec: { containers: [{ name: 'app', image: 'busybox:1.28' }] },
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ErrImagePull', 'not found', { image: '' })] },
    sentence: 'p waits for the image busybox:1.28 of its container app: it cannot be pulled (not found).',
    evidence: ['ErrImagePull: not found'],
    advice: /make it from this machine's busybox: lifepod image make busybox:1\.28/,
  },
  'a registry whose name cannot be resolved': {
    spec: { containers: [{ name: 'app', image: 'busybox:1.28' }] },
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting('app', 'ErrImagePull', 'dial tcp: lookup registry-1.docker.io on 10.0.0.2:53: no such host', {
          image: '',
        }),
      ],
    },
    sentence:
      'p waits for the image busybox:1.28 of its container app: it cannot be pulled (the name of its registry, registry-1.docker.io, cannot be resolved: is this machine offline?).',
    evidence: ['ErrImagePull: dial tcp: lookup registry-1.docker.io on 10.0.0.2:53: no such host'],
    advice:
      /^make it .*: lifepod image make busybox:1\.28\nload it .*'docker save busybox:1\.28 > FILE' writes on another machine: lifepod image load FILE\ncheck this machine's network/,
  },
  'a completed Pod whose defer container got no image': {
    spec: { deferContainers: [container('bye', { image: 'busybox:1.99' })] },
    status: {
      phase: 'Succeeded',
      containerStatuses: [status('app', { state: terminated(0, 'Completed') })],
      deferContainerStatuses: [
        status('bye', {
          image: '',
          containerID: '',
          state: terminated(
            128,
            'Error',
            'ErrImagePull: rpc error: code = Unknown desc = failed to do request: Head "https://r/v2": dial tcp: lookup r: no such host',
          ),
        }),
      ],
    },
    sentence: 'p has completed: all its app containers ended with code 0; its defer container bye failed.',
    evidence: [
      'container app: exit code 0 (Completed)',
      'defer container bye: could not start, its image busybox:1.99 cannot be pulled (the name of its registry, r, cannot be resolved: is this machine offline?)',
      'its object stays until it is deleted',
    ],
    advice:
      /^do by hand what bye would have done\nfor later Pods, make it .*: lifepod image make busybox:1\.99\nfor later Pods, load it .*: lifepod image load FILE$/,
  },
  'a completed Pod whose defer container failed': {
    spec: { deferContainers: [container('bye'), container('undue')] },
    status: {
      phase: 'Succeeded',
      containerStatuses: [status('app', { state: terminated(0, 'Completed') })],
      deferContainerStatuses: [
        status('bye', { state: terminated(3, 'Error') }),
        status('undue', { containerID: '', state: terminated(137, 'Skipped', 'not due on Completed') }),
      ],
    },
    sentence: 'p has completed: all its app containers ended with code 0; its defer container bye failed.',
    advice: /^do by hand what bye would have done\nsee the output of bye: lifepod logs p -n n -c bye$/,
  },
  'a registry on this machine that does not run': {
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting(
          'app',
          'ErrImagePull',
          'Head "http://127.0.0.1:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused',
        ),
      ],
    },
    sentence:
      'p waits for the image i of its container app: it cannot be pulled (its registry 127.0.0.1:5000 cannot be reached: connection refused).',
    advice: /^start the registry on 127\.0\.0\.1:5000, where no program listens: the pull is repeated\nload it /,
  },
  'a failed pull with imagePullPolicy Always': {
    spec: { containers: [{ name: 'app', image: 'i', imagePullPolicy: 'Always' }] },
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ErrImagePull', 'not found')] },
    sentence: /cannot be pulled/,
    advice:
      /^check the name, and whether the registry answers\nits imagePullPolicy is Always, so loading the image is not enough: also set imagePullPolicy: IfNotPresent \(or use a tag other than latest\), and recreate the Pod\nload it/,
  },
  'a failed pull with imagePullPolicy Always of an image that can be made': {
    spec: { containers: [{ name: 'app', image: 'busybox:1.28', imagePullPolicy: 'Always' }] },
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ErrImagePull', 'no', { image: '' })] },
    nodes: [node({})],
    sentence: /cannot be pulled \(no\)/,
    advice:
      /set imagePullPolicy: IfNotPresent, and recreate the Pod\nmake it .*: lifepod image make busybox:1\.28\nload it/,
  },
  'a failed pull with imagePullPolicy Always of an image that is on the node': {
    spec: { containers: [{ name: 'app', image: 'busybox', imagePullPolicy: 'Always' }] },
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ErrImagePull', 'no', { image: '' })] },
    nodes: [withImages('docker.io/library/busybox:latest')],
    sentence: /cannot be pulled \(no\)/,
    advice:
      /^it is on this node: set imagePullPolicy: IfNotPresent \(or use a tag other than latest\), and recreate the Pod\ncheck the name, and whether the registry answers$/,
  },
  'a failed pull with imagePullPolicy Always of an image that the node may have, as it reports five names': {
    spec: { containers: [{ name: 'app', image: 'x:6', imagePullPolicy: 'Always' }] },
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ErrImagePull', 'no', { image: '' })] },
    nodes: [withImages('x:1', 'x:2', 'x:3', 'x:4', 'x:5')],
    sentence: /cannot be pulled \(no\)/,
    advice:
      /its imagePullPolicy is Always, so the node pulls it even if it has it, as 'lifepod image list' shows: set imagePullPolicy: IfNotPresent, and recreate the Pod\nif the node does not have it, load it from an archive/,
  },
  'a topology spread constraint whose key the node lacks': {
    ...unscheduled(
      "1 node(s) didn't match pod topology spread constraints (missing required label)",
      /^label a node with each topologyKey of its topologySpreadConstraints, or change its topologySpreadConstraints: kubectl label node node zone=VALUE$/m,
    ),
    spec: { ...unbound, topologySpreadConstraints: [spread('zone'), spread('zone'), spread('kubernetes.io/hostname')] },
    nodes: [labeled({ 'kubernetes.io/hostname': 'node' })],
  },
  'a topology spread constraint whose key a node lacks that is not known': unscheduled(
    "1 node(s) didn't match pod topology spread constraints (missing required label)",
    /: kubectl label node NODE KEY=VALUE$/m,
  ),
  'a topology spread constraint': unscheduled(
    "1 node(s) didn't match pod topology spread constraints",
    /^change its topologySpreadConstraints, or add a node$/m,
  ),
  'inter-Pod affinity whose key the node lacks': {
    ...unscheduled(
      "1 node(s) didn't match pod affinity rules",
      /^label a node with each topologyKey of its podAffinity, or change its podAffinity: kubectl label node node zone=VALUE$/m,
    ),
    spec: near('zone'),
    nodes: [labeled({})],
  },
  'inter-Pod affinity': {
    ...unscheduled("1 node(s) didn't match pod affinity rules", /^create a Pod that its podAffinity selects/),
    spec: near('zone'),
    nodes: [labeled({ zone: 'a' })],
  },
  'inter-Pod anti-affinity': unscheduled(
    "1 node(s) didn't match pod anti-affinity rules",
    /^delete the Pods that its podAntiAffinity avoids/,
  ),
  'inter-Pod anti-affinity of another Pod': unscheduled(
    "1 node(s) didn't satisfy existing pods anti-affinity rules",
    /^delete the Pod whose podAntiAffinity avoids it/,
  ),
  'a host port that another Pod uses': {
    ...unscheduled("1 node(s) didn't have free ports for the requested pod ports", /^another Pod uses the hostPort/),
    spec: { ...unbound, containers: [container('app', { ports: [{ containerPort: 80, hostPort: 8124 }] })] },
    otherPods: [
      podOnPort('same', 8124),
      podOnPort('other', 8125),
      podOnPort('ended', 8124, { status: { phase: 'Succeeded' } }),
      podOnPort('unbound', 8124, { spec: unbound }),
    ],
    sentence: 'p is not scheduled: its host port TCP/8124 is used by the Pod a/same.',
    evidence: [
      "condition PodScheduled is False (Unschedulable): 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
    ],
  },
  'a host port that a Pod uses that is not known': {
    ...unscheduled("1 node(s) didn't have free ports for the requested pod ports", /^another Pod uses the hostPort/),
    otherPods: [],
  },
  'a proxy that does not answer': {
    status: {
      conditions: UNREADY,
      containerStatuses: [waiting('app', 'ErrImagePull', 'proxyconnect tcp: dial tcp 127.0.0.1:9: refused')],
    },
    sentence:
      "p waits for the image i of its container app: it cannot be pulled (the engine's proxy cannot be used: dial tcp 127.0.0.1:9: refused).",
    advice: /^check HTTPS_PROXY/,
  },
  'an image whose name a shell would not take as one word': {
    spec: { containers: [{ name: 'app', image: 'x;y' }] },
    status: { containerStatuses: [waiting('app', 'ErrImageNeverPull', 'absent', { image: '' })] },
    sentence: /is not on the node and may not be pulled/,
    advice: /^load it from an archive, without a registry: lifepod image load FILE\nor let the node pull it/,
  },
  'an image volume whose name is not valid': {
    spec: {
      containers: [container('app', { image: 'app:1' })],
      volumes: [{ name: 'data', image: { reference: 'Data:1' } }],
    },
    status: {
      containerStatuses: [
        waiting('app', 'ErrImagePull', 'failed to parse image reference "Data:1": invalid reference format: no'),
      ],
    },
    sentence: 'p cannot start: "Data:1", the image of its volume data, is not a valid image name.',
    advice: /with a PATH in lower case, .*\ncorrect the name, and recreate the Pod$/,
  },
  'an image volume whose name is not valid and which may not be pulled': {
    spec: {
      containers: [container('app', { image: 'app:1' })],
      volumes: [{ name: 'data', image: { reference: 'UP/x:1', pullPolicy: 'Never' } }],
    },
    status: {
      containerStatuses: [
        waiting('app', 'ErrImageNeverPull', 'Container image "UP/x:1" is not present with pull policy of Never'),
      ],
    },
    sentence: 'p cannot start: "UP/x:1", the image of its volume data, is not a valid image name.',
    advice: /^an image name is .* with a PATH in lower case, .*\ncorrect the name, and recreate the Pod$/,
  },
  'an image volume that is always pulled and has the image of the container': {
    spec: {
      containers: [container('app', { image: 'busybox', imagePullPolicy: 'IfNotPresent' })],
      volumes: [{ name: 'data', image: { reference: 'busybox', pullPolicy: 'Always' } }],
    },
    status: { containerStatuses: [waiting('app', 'ImagePullBackOff', 'Back-off pulling image "busybox": no')] },
    nodes: [withImages('docker.io/library/busybox:latest')],
    steps: [[4, 'MountFailed', until(6)]],
    sentence: /^p waits for the image busybox of its volume data: it cannot be pulled \(no\), the next attempt is in 6/,
    advice:
      /^it is on this node: set pullPolicy: IfNotPresent \(or use a tag other than latest\), and recreate the Pod\n/,
  },
  'a container and an image volume that always pull the same image': {
    spec: {
      containers: [container('app', { image: 'data:1', imagePullPolicy: 'Always' })],
      volumes: [{ name: 'data', image: { reference: 'data:1', pullPolicy: 'Always' } }],
    },
    status: { containerStatuses: [waiting('app', 'ImagePullBackOff', 'Back-off pulling image "data:1": no')] },
    nodes: [withImages('docker.io/library/data:1')],
    sentence: /^p waits for the image data:1 of its container app: it cannot be pulled/,
    advice:
      /^it is on this node: set imagePullPolicy, and pullPolicy of the volume data: IfNotPresent, and recreate the Pod\n/,
  },
  'a defer container whose image name is not valid': {
    spec: {
      containers: [container('app')],
      deferContainers: [container('first'), container('bye', { image: 'Foo:1' })],
    },
    status: {
      conditions: READY,
      containerStatuses: [running('app')],
      deferContainerStatuses: [waiting('bye', 'InvalidImageName', `couldn't parse image name "Foo:1"`)],
    },
    sentence: 'p runs, but the image Foo:1 of its defer container bye is not a valid image name.',
    advice:
      /^an image name is .*\ncorrect the name: kubectl patch pod p -n n --type=json -p '\[\{"op":"replace","path":"\/spec\/deferContainers\/1\/image","value":"IMAGE"\}\]'$/,
  },
  'an image that is given by digest': {
    spec: { containers: [{ name: 'app', image: `web@sha256:${'0'.repeat(64)}` }] },
    status: { containerStatuses: [waiting('app', 'ErrImageNeverPull', 'absent', { image: '' })] },
    sentence: /is not on the node and may not be pulled/,
    advice:
      /^load it from an archive, without a registry \(for a digest, from an OCI archive whose index\.json has this digest\): lifepod image load FILE\n/,
  },
  'an image that is given by its ID and always pulled': {
    spec: { containers: [{ name: 'app', image: '2fbe93322ebd', imagePullPolicy: 'Always' }] },
    status: { containerStatuses: [waiting('app', 'ErrImagePull', 'none', { image: '' })] },
    sentence: /^p waits for the image 2fbe93322ebd of its container app/,
    advice:
      /^2fbe93322ebd reads like the ID of an image, which the node cannot pull: if 'lifepod image list' shows this ID on the node, set imagePullPolicy: IfNotPresent, and recreate the Pod; otherwise use the name of the image$/,
  },
  'an image that is given by an ID that is not on the node': {
    spec: { containers: [{ name: 'app', image: `sha256:${'0a'.repeat(32)}` }] },
    status: { containerStatuses: [waiting('app', 'ErrImagePull', 'none', { image: '' })] },
    sentence: /cannot be pulled/,
    advice: /reads like the ID of an image, which the node cannot pull: use a name that '.*' shows$/,
  },
  'a Pod whose next container needs an image that is not on the node either': {
    spec: {
      initContainers: [container('first', { image: 'a:1', imagePullPolicy: 'Never' })],
      containers: [
        container('app', { image: 'b:1', imagePullPolicy: 'Never' }),
        container('same', { image: 'a:1', imagePullPolicy: 'Never' }),
        container('present', { image: 'c:1', imagePullPolicy: 'Never' }),
        container('pulled', { image: 'd:1' }),
      ],
    },
    status: {
      initContainerStatuses: [waiting('first', 'ErrImageNeverPull', 'absent', { image: '' })],
      containerStatuses: ['app', 'same', 'present', 'pulled'].map((name) =>
        waiting(name, 'PodInitializing', '', { image: '', containerID: '' }),
      ),
    },
    nodes: [withImages('docker.io/library/c:1')],
    sentence: /^p waits for the image a:1 of its init container first/,
    evidence: [
      'ErrImageNeverPull: absent',
      'container app waits for this, and its image b:1 is not on the node either',
    ],
    advice: /docker save a:1 b:1 > FILE/,
  },
  'a missing image with imagePullPolicy Never': {
    status: { containerStatuses: [waiting('app', 'ErrImageNeverPull', 'absent')] },
    sentence: /is not on the node and may not be pulled/,
    advice:
      /^load it from an archive, without a registry, such as 'docker save i > FILE' writes on another machine: lifepod image load FILE\nor let the node pull it: set imagePullPolicy: IfNotPresent, and recreate the Pod$/,
  },
  'a pull in progress': {
    status: { conditions: UNREADY, containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    steps: [[3, 'Pulling', { ...of('app'), message: 'reg/i:1' }]],
    sentence: 'p is starting: it has been pulling the image reg/i:1 of container app for 3.00s.',
  },
  'a missing ConfigMap': {
    status: { containerStatuses: [waiting('app', 'CreateContainerConfigError', 'configmap "x" not found')] },
    sentence: 'p cannot start: container app needs the ConfigMap x, which does not exist in namespace n.',
    advice: /kubectl create configmap x -n n --from-literal=KEY=VALUE$/,
  },
  'a missing ConfigMap of which the Pod names the keys': {
    spec: {
      containers: [
        container('app', {
          env: [
            { name: 'A', valueFrom: { configMapKeyRef: { name: 'x', key: 'level' } } },
            { name: 'B', valueFrom: { configMapKeyRef: { name: 'other', key: 'no' } } },
            { name: 'C', valueFrom: { secretKeyRef: { name: 'x', key: 'no' } } },
          ],
        }),
        container('beside', { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'x', key: 'level' } } }] }),
      ],
      volumes: [
        { name: 'v', configMap: { name: 'x', items: [{ key: 'app.conf', path: 'c' }] } },
        {
          name: 'w',
          projected: { sources: [{ configMap: { name: 'x', optional: true, items: [{ key: 'o', path: 'o' }] } }] },
        },
      ],
    },
    status: { containerStatuses: [waiting('app', 'CreateContainerConfigError', 'configmap "x" not found')] },
    sentence: 'p cannot start: container app needs the ConfigMap x, which does not exist in namespace n.',
    advice: /kubectl create configmap x -n n --from-literal=level=VALUE --from-literal=app\.conf=VALUE$/,
  },
  'a missing Secret of a volume that names its keys': {
    spec: { volumes: [{ name: 'v', secret: { secretName: 's', items: [{ key: 'tls.key', path: 'k' }] } }] },
    status: { containerStatuses: [waiting('app', 'CreateContainerConfigError', 'secret "s" not found')] },
    sentence: /needs the Secret s, which does not exist/,
    advice: /kubectl create secret generic s -n n --from-literal=tls\.key=VALUE$/,
  },
  'a missing key of a Secret': {
    status: { containerStatuses: [waiting('app', 'CreateContainerConfigError', "couldn't find key k in Secret n/s")] },
    sentence: 'p cannot start: container app needs the key k of the Secret s, which does not have this key.',
    advice: /kubectl edit secret s -n n$/,
  },
  'an ephemeral container whose target container does not run': {
    spec: { ephemeralContainers: [{ ...container('debug'), targetContainerName: 'app' }] },
    status: {
      containerStatuses: [running('app')],
      ephemeralContainerStatuses: [
        waiting('debug', 'CreateContainerConfigError', 'target container app is not running', { containerID: '' }),
      ],
    },
    sentence: 'p waits: ephemeral container debug cannot be started, target container app is not running.',
    advice: /^wait for its target/,
  },
  'a failed postStart hook': {
    status: { containerStatuses: [waiting('app', 'PostStartHookError', 'HTTP lifecycle hook (/) failed')] },
    sentence: 'p cannot start: the postStart hook of container app failed, HTTP lifecycle hook (/) failed.',
    advice: /^fix its postStart hook/,
  },
  'an image that runs as root despite runAsNonRoot': {
    status: {
      containerStatuses: [
        waiting('app', 'CreateContainerConfigError', 'container has runAsNonRoot and image will run as root'),
      ],
    },
    sentence: 'p cannot start: container app may not run as root (runAsNonRoot), but its image runs as root.',
    evidence: ['CreateContainerConfigError: container has runAsNonRoot and image will run as root'],
    advice: /^give it a runAsUser above 0/,
  },
  'a runAsUser of 0 despite runAsNonRoot': {
    status: {
      containerStatuses: [
        waiting(
          'app',
          'CreateContainerConfigError',
          'container\'s runAsUser breaks non-root policy (pod: "p_n(u)", container: app)',
        ),
      ],
    },
    sentence: 'p cannot start: container app may not run as root (runAsNonRoot), but its runAsUser is 0.',
    advice: /^give it a runAsUser above 0, or set runAsNonRoot to false, and recreate the Pod$/,
  },
  'an image with a user name despite runAsNonRoot': {
    status: {
      containerStatuses: [
        waiting(
          'app',
          'CreateContainerConfigError',
          'container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root (pod: "p_n(u)", container: app)',
        ),
      ],
    },
    sentence:
      'p cannot start: container app may not run as root (runAsNonRoot), but the user of its image is the name web, which may mean root.',
    advice: /^set runAsUser in its securityContext to the number of this user, /,
  },
  'a subPath that leads out of its volume': {
    spec: { containers: [container('app', { volumeMounts: [{ name: 'v', mountPath: '/m', subPath: 'link' }] })] },
    status: {
      containerStatuses: [
        waiting(
          'app',
          'CreateContainerConfigError',
          'failed to prepare subPath for volumeMount "v" of container "app"',
        ),
      ],
    },
    sentence:
      'p cannot start: container app cannot mount the subPath link of its volume v, probably because the path leads through a file, or through a link to a place outside the volume.',
    advice: /^correct the subPath, /,
  },
  'a volume that cannot be mounted': {
    status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    events: [['FailedMount', 'MountVolume.SetUp failed: secret "s" not found']],
    steps: [[5, 'MountFailed', { message: 'secret "s" not found' }]],
    sentence: 'p waits for its volumes: one of them needs the Secret s, which does not exist in namespace n.',
  },
  'a sandbox that cannot be created': {
    status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    steps: [[5, 'SandboxFailed', { message: 'no address is free' }]],
    sentence: 'p waits: its sandbox cannot be created, no address is free.',
  },
  'sandboxes that end before a container has started in them': {
    status: { containerStatuses: [waiting('app', 'CreateContainerError', 'no running task found')] },
    events: [['SandboxChanged', 'Pod sandbox changed, it will be killed and re-created.']],
    steps: [
      [9, 'SandboxReady', { attempt: 0 }],
      [8, 'SandboxLost', { attempt: 0 }],
      [5, 'SandboxReady', { attempt: 1 }],
      [4, 'SandboxLost', { attempt: 1 }],
      [4, 'SandboxStopped', { attempt: 1 }],
      [1, 'SandboxReady', { attempt: 2 }],
    ],
    sentence: 'p waits: its sandbox ends right after its start, 2× so far.',
    evidence: [
      'Event SandboxChanged, 1.00s ago: Pod sandbox changed, it will be killed and re-created.',
      'also container app: CreateContainerError, no running task found',
    ],
    advice: /^make sure that the sandbox image of the container runtime is intact /,
  },
  'a sandbox that is lost long after its start': {
    status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    steps: [
      [90, 'SandboxReady', { attempt: 0 }],
      [3, 'SandboxLost', { attempt: 0 }],
      [1, 'SandboxReady', { attempt: 1 }],
    ],
    sentence: 'p is starting: container app is about to run.',
  },
  'a sandbox that is lost after a container has started in it': {
    status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    steps: [
      [9, 'SandboxReady', { attempt: 0 }],
      [8, 'Started', { container: 'app' }],
      [1, 'SandboxLost', { attempt: 0 }],
    ],
    sentence: 'p is starting: container app is about to run.',
  },
  'a sandbox that runs after one that ended at its start': {
    status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    steps: [
      [30, 'SandboxReady', { attempt: 0 }],
      [29, 'SandboxLost', { attempt: 0 }],
      [20, 'SandboxReady', { attempt: 1 }],
    ],
    sentence: 'p is starting: container app is about to run.',
  },
  'a sandbox that cannot be created because the disk is full': {
    status: { containerStatuses: [waiting('app', 'ContainerCreating', '', { containerID: '' })] },
    steps: [
      [
        5,
        'SandboxFailed',
        {
          message:
            'rpc error: code = Unknown desc = failed to create containerd container: mkdir /d/containerd/root/io.containerd.x/1: no space left on device',
        },
      ],
    ],
    sentence: 'p waits: its sandbox cannot be created, because the disk of the folder /d/containerd/root is full.',
    advice: /^free some space on this disk: the node retries automatically$/,
  },
  'a container that cannot be created because the disk is full': {
    status: { containerStatuses: [waiting('app', 'CreateContainerError', 'mkdir /d/x/y: no space left on device')] },
    sentence: 'p cannot start: container app cannot be started, the disk of the folder /d/x is full.',
    evidence: ['CreateContainerError: mkdir /d/x/y: no space left on device'],
    advice: /^free some space on this disk/,
  },
  'a container that succeeds and is restarted': {
    spec: { restartPolicy: 'Always' },
    status: {
      containerStatuses: [
        waiting('app', 'CrashLoopBackOff', 'back-off', { restartCount: 1, lastState: terminated(0, 'Completed') }),
      ],
    },
    sentence: 'p keeps restarting: container app ended with code 0.',
    advice: /^give it a command that does not end, or set spec\.restartPolicy to OnFailure or Never/,
  },
  'a container of a controller that succeeds and is restarted': {
    metadata: {
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'u', controller: true }],
    },
    spec: { restartPolicy: 'Always' },
    status: {
      containerStatuses: [
        waiting('app', 'CrashLoopBackOff', 'back-off', { restartCount: 1, lastState: terminated(0, 'Completed') }),
      ],
    },
    sentence: 'p keeps restarting: container app ended with code 0.',
    advice: /^give it a command that does not end; a Job runs a command that ends/,
  },
  'a container that crashes': {
    status: {
      conditions: UNREADY,
      containerStatuses: [
        waiting('app', 'CrashLoopBackOff', 'back-off', { restartCount: 2, lastState: terminated(3, 'Error') }),
      ],
    },
    steps: [[4, 'BackOff', { ...of('app'), ...until(16) }]],
    lines: { app: ['cannot open the file', 'good bye'] },
    sentence: 'p keeps restarting: container app ended with code 3; it restarts in 16.0s.',
    evidence: [
      '3 runs, the last one ended 4.00s ago with code 3 (Error)',
      'its log: cannot open the file',
      'its log: good bye',
    ],
    advice: /lifepod logs p -n n -c app --previous/,
  },
  'a container that was killed for its memory limit and left a termination message': {
    spec: { containers: [container('app', { resources: { limits: { memory: '64Mi' } } })] },
    status: {
      containerStatuses: [
        waiting('app', 'CrashLoopBackOff', '', { lastState: terminated(137, 'OOMKilled', 'last words') }),
      ],
    },
    steps: [[6, 'StopSignal', { ...of('app'), message: 'Container app failed liveness probe, will be restarted' }]],
    sentence: 'p keeps restarting: container app was killed because it reached its memory limit of 64Mi.',
    evidence: [
      '1 run, the last one ended 4.00s ago with code 137 (OOMKilled)',
      'the kernel killed it (OOMKilled)',
      'it was stopped: Container app failed liveness probe, will be restarted',
      'its last message: last words',
    ],
    advice: /^raise its memory limit of 64Mi/,
  },
  'an init container that runs': {
    spec: { initContainers: [container('side', { restartPolicy: 'Always' }), container('one'), container('two')] },
    status: {
      conditions: [condition('Initialized', 'False')],
      initContainerStatuses: [
        running('side'),
        status('one', { state: terminated(0, 'Completed'), ready: true }),
        running('two', { ready: false, restartCount: 1 }),
      ],
      containerStatuses: [waiting('app', 'PodInitializing', '', { containerID: '' })],
    },
    sentence:
      'p is initializing: init container two (3 of 3) has been running for 20.0s, and the containers after it wait for it.',
    evidence: ['it was restarted 1×', 'condition Initialized is False'],
  },
  'a readiness probe that fails': {
    spec: {
      containers: [container('app', { readinessProbe: { httpGet: { port: 80, path: '/ok' }, periodSeconds: 5 } })],
    },
    status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false })] },
    events: [['Unhealthy', 'Readiness probe failed: HTTP probe failed with statuscode: 503', 'app']],
    steps: [[12, 'ProbeFailing', { ...of('app'), reason: 'readiness' }]],
    sentence: 'p is not ready: the readiness probe of container app fails, HTTP probe failed with statuscode: 503.',
    evidence: [
      'the probe: GET /ok on port 80, every 5 s within 1 s, failing after 3 in a row',
      'Event Unhealthy, 1.00s ago: Readiness probe failed: HTTP probe failed with statuscode: 503',
      'it has been failing for 12.0s',
    ],
  },
  'a readiness probe for which the program of the engine lacks a part': {
    spec: { containers: [container('app', { readinessProbe: { grpc: { port: 80 } } })] },
    status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false })] },
    events: [
      [
        'Unhealthy',
        `Readiness probe errored and resulted in unknown state: Internal error occurred: ${LOSS} (in /l: no)`,
        'app',
      ],
    ],
    sentence: `p is not ready: the readiness probe of container app cannot run, because ${LOSS}.`,
    evidence: [
      `Event Unhealthy, 1.00s ago: Readiness probe errored and resulted in unknown state: Internal error occurred: ${LOSS} (in /l: no)`,
    ],
  },
  'a startup probe that has not succeeded yet': {
    spec: { containers: [container('app', { startupProbe: { exec: { command: ['check', 'it'] } } })] },
    status: { conditions: UNREADY, containerStatuses: [running('app', { ready: false, started: false })] },
    sentence: 'p is not ready: the startup probe of container app has not succeeded yet.',
    evidence: ['the probe: exec check it, every 10 s within 1 s, failing after 3 in a row'],
  },
  'a readiness gate that is not met': {
    spec: { readinessGates: [{ conditionType: 'example.com/gate' }] },
    status: {
      conditions: [
        condition('Initialized', 'True'),
        condition('Ready', 'False', 'ReadinessGatesNotReady', 'gate is closed'),
      ],
      containerStatuses: [running('app')],
    },
    sentence: 'p is not ready: its readiness gates are not met, gate is closed.',
    advice: /example\.com\/gate/,
  },
  'a running Pod whose containers are ready': {
    status: { phase: 'Running', conditions: READY, containerStatuses: [running('app'), running('b')] },
    sentence: 'p is running: all 2 containers are ready, for 30.0s.',
    evidence: ['container app: never restarted', 'container b: never restarted'],
    advice: /^$/,
  },
  'a running Pod with two defer containers whose images cannot be pulled': {
    spec: { deferContainers: [container('quick'), container('bye', { image: 'tools:9' }), container('last')] },
    status: {
      phase: 'Running',
      conditions: READY,
      containerStatuses: [running('app')],
      deferContainerStatuses: [
        waiting('quick', 'PodRunning', '', { containerID: '' }),
        waiting('bye', 'ImagePullBackOff', 'not found', { image: '', containerID: '' }),
        waiting('last', 'ErrImagePull', 'no such host', { containerID: '' }),
      ],
    },
    steps: [[5, 'PullFailed', { ...entry('bye'), ...until(15) }]],
    sentence:
      'p runs, but the image tools:9 of its defer container bye cannot be pulled (not found), the next attempt is in 15.0s; images are also missing for last.',
    evidence: [
      'ImagePullBackOff: not found',
      '1 attempt failed, the last one 5.00s ago',
      'ErrImagePull: no such host',
      'its other containers are not affected: a defer container needs its image only when the Pod ends',
    ],
    advice: /lifepod image load/,
  },
  'a running Pod without the image of a defer container and that of a volume': {
    spec: {
      deferContainers: [container('bye', { imagePullPolicy: 'Always' }), container('last')],
      volumes: [{ name: 'v', image: { reference: 'data:1', pullPolicy: 'Always' } }],
    },
    status: {
      conditions: READY,
      containerStatuses: [running('app')],
      deferContainerStatuses: [
        waiting('bye', 'ErrImagePull', 'not found', { image: '' }),
        waiting('last', 'ErrImagePull', 'Back-off pulling image "data:1": not found', { image: '' }),
      ],
    },
    sentence: /images are also missing for last/,
    advice:
      /its imagePullPolicy \(pullPolicy of the volume\) is Always, .*: also set imagePullPolicy \(pullPolicy of the volume\): IfNot/,
  },
  'a running Pod with a defer container whose imageFrom image cannot be pulled': {
    spec: {
      containers: [container('app', { image: 'db:2' })],
      deferContainers: [{ name: 'bye', imageFrom: 'app' }],
    },
    status: {
      conditions: READY,
      containerStatuses: [running('app')],
      deferContainerStatuses: [waiting('bye', 'ErrImagePull', 'not found', { image: '' })],
    },
    sentence: 'p runs, but the image db:2 of its defer container bye cannot be pulled (not found).',
  },
  'a running Pod with a container that was restarted': {
    status: {
      conditions: READY,
      containerStatuses: [
        running('app', {
          state: { running: { startedAt: time(1) } },
          restartCount: 4,
          lastState: terminated(1, 'Error'),
        }),
      ],
    },
    sentence: 'p is running again: container app ended with code 1, and was restarted 1.00s ago.',
  },
  'a running Pod that was restarted after a power loss': {
    status: lostRun(),
    sentence:
      'p is running again: container app was lost, probably because the machine or the container runtime stopped without a shutdown, and was restarted 1.00s ago.',
    evidence: [
      'it was restarted 1×, the last time after code 255 (Unknown)',
      'code 255 (Unknown): its process no longer existed when the container runtime looked for it',
    ],
    advice: /lifepod logs p -n n -c app --previous$/,
  },
  'a running Pod that was restarted after its node has reported a restart of the machine': {
    status: lostRun(90),
    sentence:
      'p is running again: container app was lost, because the machine was restarted without a shutdown of its node, and was restarted 1.00s ago.',
    rebooted: 3,
  },
  'a running Pod that was lost long after a restart of the machine': {
    status: lostRun(3600),
    sentence:
      'p is running again: container app was lost, probably because the machine or the container runtime stopped without a shutdown, and was restarted 1.00s ago.',
    rebooted: 4000,
  },
  'a completed Pod': {
    status: { phase: 'Succeeded', containerStatuses: [status('app', { state: terminated(0, 'Completed') })] },
    sentence: 'p has completed: all its app containers ended with code 0.',
    evidence: ['container app: exit code 0 (Completed)', 'its object stays until it is deleted'],
    advice: /^$/,
  },
  'a completed Pod with a stopped sidecar, a failed entry and a skipped one': {
    spec: {
      initContainers: [container('side', { restartPolicy: 'Always' })],
      deferContainers: [container('good'), container('bye'), container('last')],
    },
    status: {
      phase: 'Succeeded',
      initContainerStatuses: [status('side', { state: terminated(143, 'Error') })],
      containerStatuses: [status('app', { state: terminated(0, 'Completed') })],
      deferContainerStatuses: [
        status('good', { state: terminated(0, 'Completed') }),
        status('bye', { state: terminated(1, 'Error') }),
        status('last', { containerID: '', state: terminated(137, 'Skipped', 'the grace period had passed') }),
      ],
    },
    sentence:
      'p has completed: all its app containers ended with code 0; its defer container bye failed and defer container last did not run.',
    evidence: [
      'sidecar container side: exit code 143 (Error)',
      'container app: exit code 0 (Completed)',
      'defer container good: exit code 0 (Completed)',
      'defer container bye: exit code 1 (Error)',
      'defer container last: did not run, the grace period had passed',
      'its object stays until it is deleted',
    ],
    advice: /^do by hand what bye and last would have done\nsee the output of bye: lifepod logs p -n n -c bye$/,
  },
  'a failed Pod whose sidecar and entry failed as well': {
    spec: { initContainers: [container('side', { restartPolicy: 'Always' })], deferContainers: [container('bye')] },
    status: {
      phase: 'Failed',
      initContainerStatuses: [status('side', { state: terminated(143, 'Error') })],
      containerStatuses: [status('app', { state: terminated(5, 'Error') })],
      deferContainerStatuses: [status('bye', { state: terminated(1, 'Error') })],
    },
    sentence: 'p has failed: container app ended with code 5; its defer container bye failed.',
    advice: /-c app\ndo by hand what bye would have done\nsee the output of bye: lifepod logs p -n n -c bye$/,
  },
  'a failed Pod': {
    status: { phase: 'Failed', containerStatuses: [status('app', { state: terminated(5, 'Error') })] },
    lines: { app: ['no such host'] },
    sentence: 'p has failed: container app ended with code 5.',
    evidence: ['container app: exit code 5 (Error)', 'its log: no such host'],
  },
  'a Pod that failed only because of an entry with failurePolicy FailPod': {
    spec: {
      deferContainers: [
        { ...container('skipped'), failurePolicy: 'FailPod' },
        { ...container('upload'), failurePolicy: 'FailPod' },
        container('other'),
      ],
      ephemeralContainers: [container('debug')],
    },
    status: {
      phase: 'Failed',
      reason: 'DeferContainerFailed',
      containerStatuses: [status('app', { state: terminated(0, 'Completed') })],
      ephemeralContainerStatuses: [status('debug', { state: terminated(130, 'Error') })],
      deferContainerStatuses: [
        status('skipped', { containerID: '', state: terminated(137, 'Skipped', 'not due on Completed') }),
        status('upload', { state: terminated(1, 'Error', 'no receiver') }),
        status('other', { state: terminated(2, 'Error') }),
      ],
    },
    sentence:
      'p has failed: DeferContainerFailed; its defer containers upload and other failed; the failurePolicy of upload is FailPod.',
    evidence: [
      'container app: exit code 0 (Completed)',
      'defer container skipped: did not run, not due on Completed',
      'defer container upload: exit code 1 (Error): no receiver',
      'defer container other: exit code 2 (Error)',
      'ephemeral container debug: exit code 130 (Error)',
    ],
    advice:
      /^do by hand what upload and other would have done\nsee the output of upload: lifepod logs p -n n -c upload$/,
  },
  'a Pod that failed because of a container and an entry with failurePolicy FailPod': {
    spec: { deferContainers: [{ ...container('upload'), failurePolicy: 'FailPod' }] },
    status: {
      phase: 'Failed',
      reason: 'DeferContainerFailed',
      containerStatuses: [status('app', { state: terminated(3, 'Error') })],
      deferContainerStatuses: [status('upload', { state: terminated(1, 'Error') })],
    },
    sentence:
      'p has failed: DeferContainerFailed; its defer container upload failed; the failurePolicy of upload is FailPod; container app ended with code 3.',
  },
  'a Pod that exceeded its activeDeadlineSeconds': {
    spec: { activeDeadlineSeconds: 2 },
    status: {
      phase: 'Failed',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    },
    sentence: 'p has failed: it was active longer than its activeDeadlineSeconds of 2 s.',
  },
  'a Pod with defer containers that exceeded its activeDeadlineSeconds': {
    spec: {
      activeDeadlineSeconds: 2,
      deferContainers: [container('good'), container('undue'), container('upload'), container('last')],
    },
    status: {
      phase: 'Failed',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
      containerStatuses: [status('app', { state: terminated(137, 'Error') })],
      deferContainerStatuses: [
        status('good', { state: terminated(0, 'Completed') }),
        status('undue', { containerID: '', state: terminated(137, 'Skipped', 'not due on DeadlineExceeded') }),
        status('upload', { state: terminated(3, 'Error', 'upload failed') }),
        status('last', { containerID: '', state: terminated(137, 'Skipped', 'the grace period had passed') }),
      ],
    },
    steps: [
      [60, 'Started', of('app')],
      [36, 'StopSignal', { ...of('app'), ...until(-6) }],
      [6, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
    ],
    sentence:
      'p has failed: it was active longer than its activeDeadlineSeconds of 2 s; its defer container upload failed and defer container last did not run.',
    evidence: [
      'status.reason is DeadlineExceeded: Pod was active on the node longer than the specified deadline',
      'container app: exit code 137 (Error)',
      'defer container good: exit code 0 (Completed)',
      'defer container undue: did not run, not due on DeadlineExceeded',
      'defer container upload: exit code 3 (Error): upload failed',
      'defer container last: did not run, the grace period had passed',
      'container app did not end after its stop signal and was killed',
    ],
    advice:
      /^raise spec\.activeDeadlineSeconds[^\n]*\ndo by hand what upload and last would have done\nsee the output of upload: lifepod logs p -n n -c upload\nsee its life: /,
  },
  'a deleted Pod that terminated within its grace period': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [18, 'Exited', { ...of('app'), attempt: 2, exitCode: 0, reason: 'Completed' }],
      [18, 'Started', { container: 'bye', containerKind: 'defer' }],
      [17, 'DeferEnded', { container: 'bye', containerKind: 'defer', exitCode: 1, reason: 'Error' }],
      [17, 'DeferSkipped', { container: 'last', containerKind: 'defer', message: 'the grace period had passed' }],
      [16, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it was deleted, and its termination took 4.00s of the 30.0s allowed; its defer container bye failed and defer container last did not run.',
    evidence: [
      'container app: exit code 0 (Completed), after 3 runs',
      'defer container bye: exit code 1 (Error)',
      'defer container last: did not run, the grace period had passed',
    ],
  },
  'a Pod of a scaled-down workload with every outcome of an entry': {
    gone: true,
    steps: [
      [20, 'TerminationBegan', { reason: 'ScaledDown', ...until(10) }],
      ...['good', 'hang', 'other', 'slow', 'lost', 'cut', 'bad'].map((name): [number, string, Partial<Transition>] => [
        19,
        'Started',
        entry(name),
      ]),
      [18, 'DeferEnded', { ...entry('good'), exitCode: 0, reason: 'Completed' }],
      [18, 'DeferEnded', { ...entry('hang'), exitCode: 0, reason: 'GivenUp' }],
      [18, 'DeferEnded', { ...entry('other'), exitCode: 143, reason: 'GivenUp' }],
      [
        18,
        'DeferEnded',
        { ...entry('slow'), exitCode: 143, reason: 'DeadlineExceeded', message: 'its timeoutSeconds' },
      ],
      [18, 'DeferEnded', { ...entry('lost'), exitCode: 137, reason: 'SandboxLost' }],
      [18, 'DeferSkipped', { ...entry('cut'), reason: 'Skipped', message: 'the node had no time' }],
      [18, 'DeferEnded', { ...entry('bad'), exitCode: 1, reason: 'Error', message: 'dropped\n1\n\n2\n3\n' }],
      [17.5, 'Pulling', { ...entry('unpulled'), message: 'busybox:1.99' }],
      [17, 'DeferEnded', { ...entry('unpulled'), exitCode: 128, reason: 'Error', message: 'ErrImagePull: none' }],
      [17, 'DeferSkipped', { ...entry('late'), reason: 'Skipped', message: 'the grace period had passed' }],
      [17, 'DeferSkipped', { ...entry('undue'), reason: 'Skipped', message: 'not due on ScaledDown' }],
      [17, 'DeferSkipped', { ...entry('unless'), reason: 'Skipped', message: 'the app containers did not fail' }],
      [16, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: its workload was scaled down, and its termination took 4.00s of the 30.0s allowed; its defer containers bad and unpulled failed, defer container slow timed out, defer containers hang and other were given up, defer container lost was lost with the sandbox, defer container cut was cut off and defer container late did not run.',
    evidence: [
      'defer container good: exit code 0 (Completed)',
      'defer container hang: exit code 0 (GivenUp)',
      'defer container other: exit code 143 (GivenUp)',
      'defer container slow: exit code 143 (DeadlineExceeded): its timeoutSeconds',
      'defer container lost: exit code 137 (SandboxLost): its sandbox was lost, probably because the machine or the container runtime stopped without a shutdown',
      'defer container cut: was cut off, the node had no time',
      'defer container bad: exit code 1 (Error): 1 2 3',
      'defer container unpulled: could not start, its image busybox:1.99 cannot be pulled (none)',
      'defer container late: did not run, the grace period had passed',
      'defer container undue: did not run, not due on ScaledDown',
      'defer container unless: did not run, the app containers did not fail',
    ],
    advice:
      /^do by hand what slow, lost, cut, bad, unpulled and late would have done\nfor later Pods, make it .*: lifepod image make busybox:1\.99\nfor later Pods, load it .*\nsee its life/,
  },
  'a deleted Pod whose defer containers lacked their images': {
    gone: true,
    steps: [
      [25, 'StartFailed', { ...entry('two'), reason: 'ErrImageNeverPull', message: NOT_PRESENT }],
      [24, 'Pulling', { ...entry('one'), message: 'web:1' }],
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [17, 'DeferEnded', { ...entry('one'), exitCode: 128, reason: 'Error', message: 'ErrImagePull: none' }],
      [17, 'DeferEnded', { ...entry('two'), exitCode: 128, reason: 'Error', message: NEVER_PULLED }],
      [16, 'Gone'],
    ],
    sentence: /its defer containers one and two failed\.$/,
    evidence: [
      'defer container one: could not start, its image web:1 cannot be pulled (none)',
      'defer container two: could not start, its image late:2 is not on the node and may not be pulled',
    ],
    advice: /^do by hand what one and two would have done\nfor later Pods, load it .*'docker save web:1 late:2 > FILE'/,
  },
  'a deleted Pod whose defer container had an image name that was not valid': {
    gone: true,
    steps: [
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [17, 'DeferEnded', { ...entry('one'), exitCode: 128, reason: 'Error', message: `InvalidImageName: ${BAD_NAME}` }],
      [16, 'Gone'],
    ],
    sentence: /its defer container one failed\.$/,
    evidence: ['defer container one: could not start, its image Foo:1 is not a valid image name'],
    advice: /\nfor later Pods, an image name is .* with a PATH in lower case/,
  },
  'an ephemeral container whose image cannot be pulled': {
    spec: { ephemeralContainers: [container('debug', { image: 'busybux:1' })] },
    status: {
      phase: 'Running',
      conditions: READY,
      containerStatuses: [running('app')],
      ephemeralContainerStatuses: [waiting('debug', 'ErrImagePull', 'docker.io/library/busybux:1: not found')],
    },
    sentence: 'p runs, but the image busybux:1 of its ephemeral container debug cannot be pulled (not found).',
    evidence: ['ErrImagePull: docker.io/library/busybux:1: not found', 'its other containers are not affected'],
    advice: /\nif the name is wrong, add another ephemeral container: this one stays until the Pod is recreated$/,
  },
  'an ephemeral container whose image name is not valid': {
    metadata: {
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u', controller: true }],
    },
    spec: { ephemeralContainers: [container('debug', { image: 'Foo:1' })] },
    status: {
      conditions: READY,
      containerStatuses: [running('app')],
      ephemeralContainerStatuses: [waiting('debug', 'InvalidImageName', BAD_NAME)],
    },
    sentence: 'p runs, but "Foo:1", the image of its ephemeral container debug, is not a valid image name.',
    advice: /\nadd another ephemeral container, with the correct name$/,
  },
  'a deleted Pod whose defer container was retried until its time was over, because its image was missing': {
    gone: true,
    steps: [
      [19, 'Pulling', { ...entry('one'), message: 'web:1' }],
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [17, 'DeferEnded', { ...entry('one'), exitCode: 137, reason: 'DeadlineExceeded', message: 'ErrImagePull: none' }],
      [16, 'Gone'],
    ],
    sentence: /its defer container one timed out\.$/,
    evidence: ['defer container one: could not start, its image web:1 cannot be pulled (none)'],
    advice: /^do by hand what one would have done\nfor later Pods, load it .*'docker save web:1 > FILE'/,
  },
  'a deleted Pod whose defer container has the policy Never and lacked its image': {
    gone: true,
    steps: [
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [17, 'DeferEnded', { ...entry('two'), exitCode: 128, reason: 'Error', message: NEVER_PULLED }],
      [16, 'Gone'],
    ],
    sentence: /its defer container two failed\.$/,
    advice:
      /\nfor later Pods, load it .*\nfor later Pods, let the node pull it: set imagePullPolicy: IfNotPresent\nsee/,
  },
  'a deleted Pod whose object was removed long after its containers': {
    gone: true,
    steps: [
      [900, 'TerminationBegan', { reason: 'Deleted', ...until(-870) }],
      [896, 'Removed'],
      [16, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it was deleted, and its termination took 4.00s of the 30.0s allowed.',
  },
  'a Pod that was deleted by force during its termination': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [20, 'DeadlineSet', until(10)],
      [20, 'StopSignal', { ...of('app'), ...until(10) }],
      [14.69, 'DeadlineSet', until(-12.69)],
      [14.69, 'DeferSkipped', { ...entry('bye'), reason: 'Skipped', message: NO_GRACE }],
      [14.69, 'Gone'],
      [12.6, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
      [12.24, 'Removed'],
    ],
    sentence:
      'p has been gone since 11:59:45 UTC: it was deleted, and after 5.31s of the 30.0s allowed it was deleted by force, with a grace period of 0, so its defer container bye did not run.',
    advice: /^do by hand what bye would have done\n.*--now still gives.*: kubectl delete pod p -n n --now\n/,
  },
  'a Pod that was deleted by force while one entry ran, another had failed and another had been given up': {
    gone: true,
    steps: [
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [20, 'DeadlineSet', until(10)],
      [19, 'Started', entry('one')],
      [18, 'DeferEnded', { ...entry('one'), exitCode: 3, reason: 'Error', message: 'no host\n' }],
      [18, 'Started', entry('hang')],
      [14, 'DeadlineSet', until(-12)],
      [14, 'DeferSkipped', { ...entry('later'), reason: 'Skipped', message: 'given up' }],
      [14, 'DeferSkipped', { ...entry('last'), reason: 'Skipped', message: NO_GRACE }],
      [14, 'Gone'],
      [13, 'DeferSkipped', { ...entry('hang'), reason: 'Skipped', message: NO_GRACE }],
      [12, 'Removed'],
    ],
    sentence:
      'p has been gone since 11:59:46 UTC: it was deleted, and after 6.00s of the 30.0s allowed it was deleted by force, with a grace period of 0, so its defer container hang was cut off and defer container last did not run; its defer container one failed and defer container later was given up.',
    evidence: [
      'a grace period of 0 comes from kubectl delete --grace-period=0 --force, or from terminationGracePeriodSeconds: 0',
      'defer container one: exit code 3 (Error): no host',
      `defer container hang: was cut off, ${NO_GRACE}`,
      'defer container later: did not run, given up',
      `defer container last: did not run, ${NO_GRACE}`,
    ],
    advice: /^do by hand what one, hang and last would have done\nnext time, /,
  },
  'a Pod that was deleted by force while an entry ran whose end is not recorded yet': {
    gone: true,
    steps: [
      [6, 'TerminationBegan', { reason: 'Deleted', ...until(24) }],
      [6, 'DeadlineSet', until(24)],
      [5, 'Started', entry('hang')],
      [1, 'DeadlineSet', until(1)],
      [1, 'DeferSkipped', { ...entry('last'), reason: 'Skipped', message: NO_GRACE }],
      [1, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:59 UTC: it was deleted, and after 5.00s of the 30.0s allowed it was deleted by force, with a grace period of 0, so its defer container last did not run; its defer container hang was running when last recorded.',
    evidence: [
      'a grace period of 0 comes from kubectl delete --grace-period=0 --force, or from terminationGracePeriodSeconds: 0',
      'defer container hang: its end is not recorded',
      `defer container last: did not run, ${NO_GRACE}`,
    ],
    advice: /^do by hand what last would have done\ncheck whether hang did all its work, and do the rest by hand\n/,
  },
  'a deleted Pod with an entry whose command does not exist': {
    gone: true,
    steps: [
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [19, 'Exited', { ...entry('two'), exitCode: 128, reason: 'StartError' }],
      [
        19,
        'DeferEnded',
        {
          ...entry('two'),
          exitCode: 128,
          reason: 'Error',
          message: 'runc create failed: exec: "nonexist": executable file not found in $PATH: unknown',
        },
      ],
      [16, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it was deleted, and its termination took 4.00s of the 30.0s allowed; its defer container two failed.',
    evidence: [
      'defer container two: could not start, because it cannot execute its command nonexist: there is no such file in the PATH of its image',
    ],
    advice: /^do by hand what two would have done\nsee its life/,
  },
  'a deleted Pod with an entry that started, failed to start again, and an entry whose program exited with 128': {
    gone: true,
    steps: [
      [20, 'TerminationBegan', { reason: 'Deleted', ...until(10) }],
      [19, 'Started', { ...entry('two'), attempt: 0 }],
      [19, 'Exited', { ...entry('two'), attempt: 0, exitCode: 1, reason: 'Error' }],
      [18, 'Exited', { ...entry('two'), attempt: 1, exitCode: 128, reason: 'StartError' }],
      [18, 'DeferEnded', { ...entry('two'), exitCode: 128, reason: 'Error', message: NO_PROGRAM }],
      [17, 'Started', { ...entry('git'), attempt: 0 }],
      [17, 'Exited', { ...entry('git'), attempt: 0, exitCode: 128, reason: 'Error' }],
      [17, 'DeferEnded', { ...entry('git'), exitCode: 128, reason: 'Error', message: `fatal: ${NO_PROGRAM}` }],
      [16, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it was deleted, and its termination took 4.00s of the 30.0s allowed; its defer containers two and git failed.',
    evidence: [
      'defer container two: could not start, because it cannot execute its command hook: there is no such file in its image',
      `defer container git: exit code 128 (Error): fatal: ${NO_PROGRAM}`,
    ],
  },
  'a deleted Pod whose object was removed some seconds after its end': {
    gone: true,
    steps: [
      [100, 'TerminationBegan', { reason: 'Deleted', ...until(84) }],
      [6.2, 'Finished', { reason: 'Failed' }],
      [6, 'Removed'],
      [4, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:56 UTC: it was deleted, and its termination took 1m34s of the 3m04s allowed.',
  },
  'a completed Pod that was deleted much later': {
    gone: true,
    steps: [
      [3620, 'TerminationBegan', { reason: 'Completed', ...until(-3590) }],
      [3619, 'Finished', { reason: 'Succeeded' }],
      [17, 'Removed'],
      [16, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it had completed, and its termination took 1.00s of the 30.0s allowed.',
  },
  'a completed Pod whose object was deleted before its sandbox was removed': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [20, 'Exited', { ...of('app'), exitCode: 0, reason: 'Completed' }],
      [20, 'TerminationBegan', { reason: 'Completed', ...until(10) }],
      [16, 'Gone'],
      [15, 'Removed'],
    ],
    sentence:
      'p has been gone since 11:59:45 UTC: it had completed, and its termination took 5.00s of the 30.0s allowed.',
  },
  'a failed Pod that is gone': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [40, 'Exited', { ...of('log'), containerKind: 'init', exitCode: 1, reason: 'Error' }],
      [20, 'Exited', { ...of('app'), exitCode: 9, reason: 'Error' }],
      [20, 'TerminationBegan', { reason: 'Completed', ...until(10) }],
      [19, 'Exited', { ...of('log'), containerKind: 'init', exitCode: 143, reason: 'Error' }],
      [18, 'Finished', { reason: 'Failed' }],
      [16, 'Gone'],
      [16, 'Removed'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it had failed because container app ended with code 9, and its termination took 2.00s of the 30.0s allowed.',
  },
  'a Pod that is gone and failed because of its liveness probe': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [22, 'ProbeFailing', { ...of('app'), reason: 'liveness', message: 'dead\n' }],
      [21, 'StopSignal', { ...of('app'), message: 'Container app failed liveness probe' }],
      [20, 'Exited', { ...of('app'), exitCode: 137, reason: 'Error' }],
      [20, 'TerminationBegan', { reason: 'Completed', ...until(10) }],
      [18, 'Finished', { reason: 'Failed' }],
      [16, 'Gone'],
      [16, 'Removed'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it had failed because the liveness probe of container app failed, dead, and its termination took 2.00s of the 30.0s allowed.',
  },
  'a Pod that is gone and failed because of a defer container': {
    gone: true,
    steps: [
      [60, 'Started', of('app')],
      [20, 'Exited', { ...of('app'), exitCode: 0, reason: 'Completed' }],
      [20, 'TerminationBegan', { reason: 'Completed', ...until(10) }],
      [18, 'Exited', { ...entry('bye'), exitCode: 5, reason: 'Error' }],
      [18, 'DeferEnded', { ...entry('bye'), exitCode: 5, reason: 'Error' }],
      [18, 'Finished', { reason: 'Failed', message: 'DeferContainerFailed: defer containers failed: bye' }],
      [16, 'Gone'],
      [16, 'Removed'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it had failed, with the reason DeferContainerFailed, and its termination took 2.00s of the 30.0s allowed; its defer container bye failed.',
  },
  'a deleted Pod that was never scheduled': {
    gone: true,
    steps: [
      [60, 'Created'],
      [59, 'NotScheduled', { message: '0/1 nodes are available: 1 Insufficient cpu.' }],
      [16, 'Gone'],
    ],
    sentence:
      'p has been gone since 11:59:44 UTC: it was deleted before any of its containers ran; it was not scheduled, 0/1 nodes are available: 1 Insufficient cpu.',
    evidence: [],
  },
  'a deleted Pod that was never started': {
    gone: true,
    steps: [[16, 'Gone']],
    sentence: 'p has been gone since 11:59:44 UTC: it was deleted before any of its containers ran.',
  },
  'a deleted Pod whose end was not recorded': {
    gone: true,
    steps: [[60, 'Started', of('app')]],
    sentence: 'p is gone, and its record ends before its end was seen, at 11:59:00 UTC.',
    evidence: ['container app: its end is not recorded'],
  },
});
