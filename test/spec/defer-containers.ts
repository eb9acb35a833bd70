/**
 * The specification of defer containers, sentence by sentence, each with the tests that hold lifepod to it.
 * test/tidy/spec.test.ts checks that the tests named here exist.
 */
import { termination } from './defer-order.ts';
import type { Sentence } from './sentence.ts';

const api = 'src/api/core/v1/pod/';
const orderTests = 'src/simulation/defer-order.test.ts';
const when = 'src/simulation/defer-when.test.ts';
const failures = 'src/simulation/defer-failures.test.ts';
const status = 'src/simulation/defer-status.test.ts';
const recovery = 'src/simulation/defer-recovery.test.ts';
const properties = 'src/simulation/defer.property.test.ts';
const kill = 'test/e2e/defer-kill.test.ts';
const kubectl = 'test/integration/defer-api.test.ts';

export const specification: Readonly<Record<string, readonly Sentence[]>> = {
  Fields: [
    {
      says: 'A Pod without deferContainers behaves exactly as upstream.',
      tests: [
        ['src/simulation/traces.test.ts', 'the lives of the sample go as they always went'],
        [`${api}defer-containers.test.ts`, 'a Pod without the field has nothing of them'],
      ],
    },
    {
      says: 'A defer container has every other field of a container (resources, volumes, security context, env, ports, …).',
      tests: [
        [`${api}defer-containers.test.ts`, 'a defer container has every other field of a container'],
        [`${api}validate-defers.test.ts`, 'defer containers have all other fields, and no more'],
      ],
    },
    {
      says: 'trigger: PreExit (default) | PostExit; restartPolicy: Never (default) | OnFailure | Always',
      tests: [
        [`${api}defer-containers.test.ts`, 'the trigger is PreExit by default'],
        [`${api}defer-containers.test.ts`, 'the restart policy is Never by default'],
      ],
    },
    {
      says: 'Always is treated as OnFailure: exit 0 ends an entry.',
      tests: [[failures, 'it is retried, after 1 s, 2 s, 4 s, 8 s, 10 s, 10 s, until it succeeds']],
    },
    {
      says: 'The annotation pod.alpha.kubernetes.io/defer-containers is read on create where the field is absent.',
      tests: [
        [`${api}older-forms.test.ts`, 'is read on create where the field is absent'],
        [kubectl, 'is read on create, and cannot be changed'],
      ],
    },
    {
      says: 'pod.alpha.kubernetes.io/defer-container-statuses mirrors the status.',
      tests: [[`${api}older-forms.test.ts`, 'the statuses are mirrored']],
    },
    {
      says: 'Bad JSON, or both forms present and different, is a validation error.',
      tests: [
        [`${api}older-forms.test.ts`, 'bad JSON is a validation error'],
        [`${api}older-forms.test.ts`, 'both forms that differ are a validation error'],
      ],
    },
    {
      says: 'The annotation is immutable on an existing Pod.',
      tests: [[`${api}older-forms.test.ts`, 'is immutable on an existing Pod']],
    },
  ],

  Validation: [
    {
      says: 'Names unique across all lists; all rules of app containers.',
      tests: [
        [`${api}validate-defers.test.ts`, 'names are unique across init, app, defer and ephemeral containers'],
        [`${api}validate-defers.test.ts`, 'all rules of app containers hold'],
      ],
    },
    {
      says: 'No readinessProbe, startupProbe, lifecycle; livenessProbe is allowed.',
      tests: [[`${api}validate-defers.test.ts`, 'probes and hooks']],
    },
    {
      says: 'Every PreExit entry before every PostExit entry; known trigger and restartPolicy; timeoutSeconds > 0.',
      tests: [[`${api}validate-defers.test.ts`, 'trigger, restartPolicy and timeoutSeconds']],
    },
    {
      says: 'Interval > 0 and count > 0, both or neither, and not together with deferContainerGracePeriodExtension.',
      tests: [[`${api}validate-defers.test.ts`, 'the extension of the grace period']],
    },
    {
      says: 'On an existing Pod only spec.deferContainers[*].image may change, and not once the Pod is terminating.',
      tests: [
        [`${api}validate-defers.test.ts`, 'may change images'],
        [`${api}validate-defers.test.ts`, 'may not reorder entries'],
        [kubectl, 'another change is refused, and said'],
        [kubectl, 'the image is not changed once the Pod is terminating'],
      ],
    },
  ],

  'When the list runs': [
    {
      says: 'Deleted, evicted through the API, preempted, drained, scaled down, replaced: runs, within the grace period in force.',
      tests: [
        [when, 'deleted: PreExit entries in order, then the app stops, then PostExit entries'],
        [when, 'EvictionByEvictionAPI'],
        [when, 'PreemptionByScheduler'],
      ],
    },
    {
      says: 'All app containers completed by themselves: runs once, as exit work; the grace counts from the last exit.',
      tests: [
        [when, 'app containers that completed by themselves with'],
        [when, 'a Pod that completes by itself does not wait with its app for the others'],
      ],
    },
    {
      says: 'Deleting the Pod later does not run it again.',
      tests: [[when, 'deleting a Pod that completed by itself does not run it again']],
    },
    {
      says: "Deleting it meanwhile shortens the deadline to the delete's if that is earlier.",
      tests: [[when, 'shortens the deadline if that is earlier']],
    },
    {
      says: "activeDeadlineSeconds passed: runs within the grace period; the deadline's own time does not count it.",
      tests: [[when, 'activeDeadlineSeconds: it runs within the grace period, which counts from then']],
    },
    {
      says: 'Node pressure, soft threshold: runs within min(grace, the configured maximum).',
      tests: [[when, 'at most: within the shorter of it and the grace period']],
    },
    {
      says: 'Node pressure, hard threshold: skipped; recorded.',
      tests: [[when, 'node pressure, hard: skipped, and recorded']],
    },
    {
      says: 'Graceful node shutdown: runs within min(grace, the shutdown grace left for this Pod).',
      tests: [[when, 'node shutdown: within the time that is left for the Pod']],
    },
    {
      says: 'Deleted with grace 0 and force: skipped, no trace of a run.',
      tests: [[when, 'deleted by force: skipped, no trace of a run']],
    },
    {
      says: 'Never scheduled, or no init container had started: skipped; deletion is immediate.',
      tests: [[when, 'no init container had started: skipped, deletion is immediate']],
    },
    {
      says: 'Deleted, or failed, while initializing: PreExit entries are skipped, PostExit entries run.',
      tests: [
        [when, 'deleted while initializing: PreExit entries are skipped, PostExit entries run'],
        [when, 'failed while initializing: PostExit entries run'],
      ],
    },
    {
      says: 'An app container crashes and restarts in a living Pod: not run.',
      tests: [[when, 'an app container that crashes and restarts in a living Pod: not run']],
    },
    {
      says: 'The node crashed, the sandbox was lost: a new sandbox, PreExit entries not yet done are skipped, PostExit entries run.',
      tests: [
        [when, 'the sandbox is lost: a new one, the PreExit entries not yet done are skipped, PostExit entries run'],
        [recovery, 'makes a new sandbox for PostExit entries where the old one is lost and there is time'],
      ],
    },
    {
      says: 'Otherwise NodeLost is recorded.',
      tests: [[recovery, 'records NodeLost where the sandbox is lost and the time has passed']],
    },
  ],

  'The order of a termination': termination,

  'Status and events': [
    {
      says: "Before termination every entry's status is waiting, reason PodRunning.",
      tests: [[status, 'before termination every entry waits with the reason PodRunning']],
    },
    {
      says: 'During it, entries waiting for earlier ones have reason PendingDefer; the running one is running; ended ones terminated.',
      tests: [[status, 'during it, entries wait with PendingDefer, run, and end']],
    },
    {
      says: 'Completed, Error, OOMKilled, DeadlineExceeded or Skipped (exit code 0 is not claimed: it is 137).',
      tests: [[orderTests, 'at the deadline there are 2 s more']],
    },
    {
      says: 'Condition Deferred: absent before termination; False with DeferContainersRunning during it; then True with DeferContainersSucceeded, or False with DeferContainersFailed (message names them) or GracePeriodExceeded.',
      tests: [
        [status, 'the condition Deferred: absent, then False with DeferContainersRunning, then decided'],
        [failures, 'with Never the list moves on'],
        [orderTests, 'at the deadline there are 2 s more'],
      ],
    },
    {
      says: 'kubectl get pods: STATUS is Defer:i/n, i the entries that have ended in any way, while the list runs; Terminating otherwise. READY counts app containers as ever.',
      tests: [
        [`${api}defer-containers.test.ts`, 'STATUS counts the entries that have ended in any way, while the list runs'],
        [`${api}defer-containers.test.ts`, 'Terminating otherwise, as upstream'],
        [`${api}defer-containers.test.ts`, 'READY counts app containers as ever'],
        [kubectl, 'kubectl get -w shows Defer:i/n, and Terminating before and after'],
      ],
    },
    {
      says: 'Events bear the field path spec.deferContainers{name}; and on the Pod DeferStarted, DeferCompleted.',
      tests: [[status, 'events bear the path of their entry, those of the list the Pod']],
    },
    {
      says: 'terminationMessagePolicy defaults to FallbackToLogsOnError for entries.',
      tests: [[`${api}defer-containers.test.ts`, 'the termination message falls back to the log by default']],
    },
    {
      says: "Logs, exec, attach and port-forward accept an entry's name as any container's.",
      tests: [
        ['src/apiserver/streaming/options.test.ts', "an entry's name as any container's"],
        ['src/apiserver/streaming/streams.test.ts', "exec and attach take a defer container's name as any container's"],
        [kubectl, "the log subresource takes an entry's name"],
      ],
    },
  ],

  'What an entry can know': [
    {
      says: 'The downward API offers status.termination.reason, .deadline and .exitCodes to defer containers, as env fieldRef.',
      tests: [
        [`${api}validate-defers.test.ts`, 'is offered to defer containers, as env'],
        [`${api}validate-defers.test.ts`, 'is not offered to init and app containers'],
      ],
    },
  ],

  Resources: [
    {
      says: "Per resource the Pod's effective request (and limit) is the highest of: init containers' highest; sidecars + sum of app containers + highest PreExit entry; sidecars + highest PostExit entry.",
      tests: [
        [`${api}resources.test.ts`, 'are the highest of the parts, here:'],
        [`${api}resources.test.ts`, 'are what runs at the same time at most'],
      ],
    },
    {
      says: 'A limit that is missing on one of the parts counts as the highest.',
      tests: [[`${api}resources.test.ts`, 'have no limit where one part has none']],
    },
    {
      says: "Scheduling, quota, QoS and the Pod's cgroup use it.",
      tests: [
        ['src/scheduling/schedule.test.ts', 'with a PreExit'],
        [`${api}qos.test.ts`, 'a defer container'],
      ],
    },
  ],

  'Images and volumes': [
    {
      says: 'With prePullDeferImages the images are pulled once the Pod runs (Event on failure; it does not affect the Pod).',
      tests: [
        [status, 'are pulled once the Pod runs'],
        [status, 'or only in their turn, with prePullDeferImages false'],
        [status, 'a failure ahead of the turn is told and does not affect the Pod, and the turn tries anew at once'],
      ],
    },
  ],

  'Surviving the agent': [
    {
      says: 'Before each step its intent is written (entry, attempt, container ID, deadline).',
      tests: [[properties, 'an attempt starts only once the status has announced it']],
    },
    {
      says: 'After a restart of the agent, at any point, the list goes on where it was: a running entry is re-adopted, a finished one is not run again, the deadline does not move.',
      tests: [
        [recovery, 'adopts the entry that runs'],
        [recovery, 'does not run again what has ended, whichever of status and runtime knows it'],
        [recovery, 'does not move the deadline'],
        [status, 'whatever action of the agent is its last, the list ends as it would have'],
        [properties, 'a crash of the agent changes nothing in how the list ends'],
        [kill, 'kill -9 with each entry'],
      ],
    },
    {
      says: "A crash between the start of an entry and its record may run that attempt's container once only.",
      tests: [
        [recovery, 'tries once more what ended badly before its start was written down, even with restartPolicy Never'],
        [kill, 'kill -9 between'],
      ],
    },
  ],

  Workloads: [
    {
      says: 'deferContainers is a field of Pod templates everywhere.',
      tests: [[`${api}defer-containers.test.ts`, 'the PodTemplate type knows them']],
    },
  ],
};
