/** The information, resources, images, references and volumes of an entry. */
import type { Sentence } from './sentence.ts';

const validation = 'src/api/core/v1/pod/validation/validate-defers.test.ts';
const fields = 'src/api/core/v1/pod/defer-containers.test.ts';
const resources = 'src/api/core/v1/pod/resources.test.ts';
const qos = 'src/api/core/v1/pod/status/qos.test.ts';
const ofPod = 'src/node/resources/container-resources.test.ts';
const e2e = 'test/e2e/defer.test.ts';
const inGroups = 'test/e2e/own-engine/resources.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const onContainers = 'test/long/defer-fields.test.ts';
const inLives = 'src/simulation/defer-status.test.ts';
const order = 'src/simulation/defer-order.test.ts';
const status = 'src/lifecycle/status.test.ts';
const progress = 'src/lifecycle/start-order.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const kept = 'src/node/pod/kept-references.test.ts';
const onMachine = 'test/integration/kept-references.test.ts';
const whole = 'test/e2e/defer-references.test.ts';
const downward = 'src/node/container/downward.test.ts';
const files = 'src/node/volumes/volume-manager.test.ts';

export const knowledge: readonly Sentence[] = [
  {
    says: 'The downward API offers, as env `fieldRef` to entries and as a `downwardAPI` volume item to every container: `status.termination.reason`, `status.termination.deadline` (RFC 3339; a volume follows its moves) and `status.termination.containers` (JSON, as above);',
    tests: [
      [validation, '%s is available in the environment of defer containers'],
      [validation, '%s is not available in the environment of init and app containers'],
      [validation, '%s is available in downward API and projected volumes'],
      [validation, '%s is not available in volumes of a Pod without defer containers'],
      [downward, 'reason'],
      [downward, 'deadline'],
      [downward, 'containers'],
      [
        files,
        'the volume manager updates the fields of the termination, which are empty before it, when its deadline moves',
      ],
      [e2e, 'defer containers of an evicted Pod get the reason, the deadline and the exit codes as variables'],
      [onContainers, 'the downward API shows the termination in files, and to entries in environment variables'],
      ['test/long/eviction.test.ts', 'a soft memory threshold ends one Pod after the other'],
    ],
  },
  {
    says: 'and, as before, `status.termination.exitCodes` (JSON: container name to exit code).',
    tests: [
      [downward, 'exitCodes'],
      [e2e, 'a Pod that completes runs its defer containers once, and does not repeat them when it is deleted'],
    ],
  },
  {
    says: "Before T0 the files are empty; an app's preStop hook and a sidecar can therefore read why the Pod ends.",
    tests: [
      [downward, 'is empty before the termination starts and has a value afterwards'],
      [files, 'updates the fields of the termination, which are empty before it'],
      ['src/lifecycle/termination-waves.test.ts', 'are written before the first hook or entry'],
      [onContainers, 'the downward API shows the termination in files'],
    ],
  },
];

export const resourceSentences: readonly Sentence[] = [
  {
    says: "An entry without requests and limits counts nowhere: it runs in the Pod's control group, beside what is there, and changes neither the QoS class nor the effective request.",
    tests: [
      [resources, 'an entry without requests and limits does not change the effective resources'],
      [qos, 'a defer container without requests and limits'],
      [ofPod, 'the limits of the other containers if a defer container has no requests and limits'],
    ],
  },
  {
    says: "For entries with them the Pod's effective request (and limit) is the highest of: init containers' highest (plus sidecars started before it); sidecars + sum of app containers + highest PreExit entry; sidecars + highest PostExit entry.",
    tests: [
      [resources, 'sidecars, app containers and the highest PreExit entry'],
      [resources, 'sidecars and the highest PostExit entry'],
      [resources, 'the highest init container, with the sidecars before it'],
      [resources, 'the effective amount of each resource is computed separately'],
      [resources, 'effective requests equal the highest sum of containers that run at the same time'],
    ],
  },
  {
    says: 'A limit that is missing on one of these parts counts as the highest.',
    tests: [[resources, 'there is no effective limit if an entry with trigger']],
  },
  {
    says: "Scheduling, quota, QoS and the Pod's cgroup use it.",
    tests: [
      ['src/scheduling/schedule.test.ts', 'with a PreExit'],
      [qos, 'a Pod in which only a defer container has a request'],
      [ofPod, 'the sum of sidecars, app containers and the highest PreExit container'],
      [
        inGroups,
        'the limits of a Pod cover the apps together with the largest PreExit defer container, or a larger PostExit one',
      ],
      [
        'src/api/core/v1/resource-quota/usage/usage.test.ts',
        'contains the largest PreExit entry with the apps, and at least a PostExit entry',
      ],
    ],
  },
  {
    says: "LimitRange defaults and a quota's demand for values do not apply to entries without resources.",
    tests: [
      [
        'src/api/core/v1/limit-range/constraints.test.ts',
        'a LimitRange sets defaults only in defer containers that have a request or limit',
      ],
      [
        'src/api/core/v1/resource-quota/usage/usage.test.ts',
        'demands no values for defer containers without resources',
      ],
    ],
  },
  {
    says: 'PodSecurity and every other admission plugin look at `deferContainers` as at containers.',
    tests: [
      [fields, 'the token of the ServiceAccount is mounted in defer containers'],
      [fields, 'references of defer containers count as references of the Pod'],
      [
        'src/apiserver/admission/pod-security.test.ts',
        'defer containers, also those in the annotation, and init containers in the older annotation are evaluated',
      ],
      ['test/e2e/pod-security.test.ts', 'a baseline namespace rejects what each control forbids, and runs other Pods'],
    ],
  },
  {
    says: '`lifepod describe pod` shows the effective request and limit.',
    tests: [
      [
        'src/cli/describe/describe-defer.test.ts',
        'describe shows the highest effective request of containers that run at the same time',
      ],
      [
        'test/e2e/clients.test.ts',
        'lifepod describe prints a section of defer containers before and during termination, and everything else as kubectl does',
      ],
    ],
  },
];

export const imageSentences: readonly Sentence[] = [
  {
    says: "With `prePullDeferImages` the images are pulled once the Pod runs and are not garbage-collected while the Pod is on the node; failure is an Event and shows in the entry's status, `why` and `lifepod status`.",
    tests: [
      [progress, 'images of defer containers are looked up once every app container has a run'],
      [progress, 'an absent image of a defer container is pulled ahead of its turn'],
      [progress, 'prePullDeferImages false pulls no image of a defer container ahead of its turn'],
      [status, 'a failed pull ahead of the turn is shown in the entry'],
      [status, 'an image that is not pulled ahead of the turn'],
      [inLives, 'images of entries are pulled once the Pod runs'],
      [inLives, 'images of entries are pulled only in their turn with prePullDeferImages false'],
      [
        inLives,
        'a pull that failed before the turn is reported, does not affect the Pod, and is retried immediately in the turn',
      ],
      [
        'src/node/images/images-in-use.test.ts',
        'imagesOf returns the images of all kinds of containers and of volumes',
      ],
      [
        'src/simulation/image-garbage.test.ts',
        'images in use are kept: by containers, by Pods that name them, by the node, by the runtime itself',
      ],
      [
        'test/e2e/own-engine/image-gc.test.ts',
        'unused images are removed after their minimum age, and images that containers of a Pod use or will need are kept',
      ],
      [
        'test/e2e/defer-kept.test.ts',
        'the status of a running Pod, lifepod why and lifepod status report that the image of a defer container cannot be pulled',
      ],
      [matrix, 'images of entries are pulled once the Pod runs; a failed pull is an Event, and the Pod stays Ready'],
      [matrix, 'with prePullDeferImages false, images of entries are pulled at their turn'],
    ],
  },
  {
    says: "`imageFrom` is resolved when the entry's turn comes, from that container's image then; it is never written into `image`, and pre-pulled again when that image changes.",
    tests: [
      [entryEnds, 'an entry with imageFrom starts from the image of the other container at its turn'],
      [
        progress,
        'an entry with imageFrom uses the image of the other container, and looks it up again when it changes',
      ],
      ['src/node/pod/executor.test.ts', 'a defer container with imageFrom runs the image that the action names'],
      [
        onContainers,
        "imageFrom: an entry runs the image that the container has at the entry's turn; the spec does not get the image",
      ],
    ],
  },
  {
    says: "ConfigMaps, Secrets, imagePullSecrets and the ServiceAccount that entries refer to in `env` and `envFrom` are read when the app containers start, kept with the Pod on the node (mode 0600, in memory where secret), refreshed while they exist, and used when the object is gone at the entry's turn: `kubectl delete -f` of a whole application runs its destructors.",
    tests: [
      [kept, 'a defer container finds referenced objects that were deleted after the app container started'],
      [kept, 'only objects that defer containers refer to are kept, readable by root alone, and Secrets in memory'],
      [
        kept,
        'a copy of a referenced object is updated when the object changes, and is kept when the object is deleted',
      ],
      [kept, 'the copy of an object that could not be read when the app container started is retried'],
      [kept, 'the image of a defer container is pulled with a pull secret that was deleted'],
      [kept, 'no copy is written for a removed Pod'],
      [
        'src/api/core/v1/pod/admission.test.ts',
        'ServiceAccount admission adds the pull secrets of the ServiceAccount to a Pod without any',
      ],
      [onMachine, "a Secret of a defer container is kept in memory across agents, and deleted with the Pod's volumes"],
      [whole, 'defer containers can read a ConfigMap and a Secret that are deleted together with their Pod'],
      [
        'test/e2e/defer-kept.test.ts',
        'defer containers read the ConfigMap and Secret of a namespace that is being deleted',
      ],
      [
        'test/e2e/defer-kept.test.ts',
        'copies of the objects that defer containers refer to survive kill -9 of the engine',
      ],
    ],
  },
  {
    says: 'What was kept in memory does not survive a reboot: the entry then reads the API, and ends with Error if the object is gone.',
    tests: [
      [
        kept,
        'after a reboot, a defer container gets a Secret from the API, and does not find a Secret that was deleted',
      ],
      [
        'src/node/container/container-config.test.ts',
        'a container with a missing %s is rejected with CreateContainerConfigError',
      ],
      [entryEnds, 'a failed start ends an entry with restartPolicy Never'],
    ],
  },
  {
    says: 'Volumes stay mounted, and tokens keep being rotated, until the list has ended.',
    tests: [
      [order, 'volumes are unmounted once the list has ended, and not before'],
      [
        'test/e2e/own-engine/defer-engine.test.ts',
        'volumes stay mounted until all defer containers have ended, even if the engine restarts',
      ],
      [
        'test/integration/volumes.test.ts',
        'tokens are renewed until the volumes are unmounted, also while the Pod is being deleted',
      ],
      [
        'src/apiserver/registry/tokens/token-request.test.ts',
        'a token is bound to a Pod and its node, even while the Pod terminates',
      ],
    ],
  },
];
