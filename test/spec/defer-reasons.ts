/** The section "When the list runs": the reason of a termination, and the entries that are due for it. */
import type { Sentence } from './sentence.ts';

const onContainers = 'test/long/defer-fields.test.ts';
const when = 'src/simulation/defer-when.test.ts';
const inLives = 'src/simulation/defer-reasons.test.ts';
const outages = 'src/simulation/defer-outages.test.ts';
const defer = 'src/lifecycle/defer.test.ts';
const causes = 'src/lifecycle/termination-causes.test.ts';
const status = 'src/lifecycle/status.test.ts';
const validation = 'src/api/core/v1/pod/validation/validate-defers.test.ts';
const statics = 'src/node/static-pods/static-pods.test.ts';
const admission = 'test/e2e/own-engine/admission.test.ts';
const daemonSets = 'src/controllers/daemon-set/daemon-set.test.ts';
const statefulSets = 'src/controllers/stateful-set/stateful-set.test.ts';

export const reasons: readonly Sentence[] = [
  {
    says: "A list runs once in a Pod's life. The first reason stays, for `onReasons` too.",
    tests: [
      [defer, 'a list runs once: a new agent continues from the status'],
      [defer, 'an end of an entry that the status has stays, regardless of other observations'],
      [defer, 'onReasons applies to the first reason'],
      [causes, 'the first of several causes gives the reason of a termination'],
      [inLives, 'the first reason stays, even if the node ends the Pod too'],
      [when, 'a delete of a Pod that completed on its own does not run the list again'],
    ],
  },
  {
    says: 'A hard threshold in the middle of a list tells every container to stop (killed after 2 s); entries that have ended keep their result, the others end as Skipped, "the node had no time".',
    tests: [
      [defer, 'a hard threshold in the middle of a list'],
      [when, 'under hard node pressure, entries that have ended keep their result'],
    ],
  },
  {
    says: '`activeDeadlineSeconds` no longer counts once a termination has begun. A Pod whose init container failed for good has the reason Completed.',
    tests: [
      [causes, 'activeDeadlineSeconds no longer counts once a termination has begun'],
      [causes, 'a Pod whose init container failed for good has completed'],
      [inLives, 'activeDeadlineSeconds no longer counts once a termination has begun'],
      [inLives, 'the reason is Completed if an init container failed for good'],
    ],
  },
  {
    says: 'If a completed Pod is deleted during its exit work, its final phase is written before the object goes (the Job controller reads it).',
    tests: [
      [
        when,
        'the final phase of a completed Pod that is deleted while its list runs is written before the object is removed',
      ],
      [status, 'the exit work of a Pod that is then deleted ends with the final phase'],
    ],
  },
  {
    says: 'A static Pod whose manifest is removed is Deleted, changed: Replaced.',
    tests: [
      [statics, 'nextSteps gives the reason Replaced to a Pod whose manifest has changed, and none to a removed one'],
      [statics, 'a static Pod with defer containers whose manifest has changed terminates with the reason Replaced'],
      [
        'test/e2e/own-engine/defer-engine.test.ts',
        'a static Pod whose manifest is removed runs its defer containers, even if the engine restarts',
      ],
    ],
  },
  {
    says: '**A start in flight counts as started.** While the start of an init or app container is under way, no entry is skipped or begun: the decision waits for the outcome of that start.',
    tests: [
      [defer, 'while the start of %s is under way, no entry is skipped or started'],
      [defer, 'while the first start of a sidecar is under way, no entry is skipped or started'],
      [defer, 'PreExit entries run once the container whose start was under way runs'],
      [defer, 'the Pod stays on the node while the start is under way'],
      [outages, 'a Pod deleted %i ms after the start of its init container was requested is cleaned up'],
      [outages, 'PreExit entries wait for a start of the app that is in flight, and then run'],
      ['test/long/defer-races.test.ts', 'a PostExit entry runs whenever the init container ran'],
    ],
  },
  {
    says: '`onReasons` limits an entry to some reasons; on others it ends as `Skipped` with the message "not due on REASON".',
    tests: [
      [defer, 'an entry is skipped if its onReasons do not contain the reason'],
      [inLives, 'onReasons skips an entry for all other reasons, which is not a failure'],
      [defer, 'an entry is skipped at its turn, not before'],
      [defer, 'a skipped entry passes the turn to the next one in the same decision'],
      [onContainers, 'onReasons: the condition DeletionReason gives the reason of a deletion'],
    ],
  },
  {
    says: 'Reasons: `Deleted`, `ScaledDown`, `Replaced` (rolling update, template change), `OwnerDeleted`, `Evicted`, `Preempted`, `DeadlineExceeded`, `NodeShutdown`, `NodePressure`, `Completed`.',
    tests: [
      [validation, 'every known reason'],
      [validation, 'an unknown reason'],
      [causes, 'the reason of a deletion'],
    ],
  },
  {
    says: 'Who deletes a Pod for a reason other than `Deleted` says so before, in the Pod condition `DeletionReason` (status True, reason as above), or, as upstream does, in `DisruptionTarget`.',
    tests: [
      [causes, 'DeletionReason'],
      [causes, 'an eviction through the API has the reason Evicted'],
      [
        'src/apiserver/registry/evictions/evict.test.ts',
        'sets the condition DisruptionTarget and deletes the Pod with the grace period of the Pod',
      ],
      [onContainers, 'onReasons: the condition DeletionReason gives the reason of a deletion'],
    ],
    awaits: ['src/controllers/replica-set'],
  },
  {
    says: 'Of the two (both True) the later `lastTransitionTime` wins; a tie goes to DisruptionTarget.',
    tests: [
      [causes, 'a condition DeletionReason that is later than DisruptionTarget gives the reason of a deletion'],
      [causes, 'a condition DisruptionTarget that is later than DeletionReason gives the reason of a deletion'],
      [causes, 'DisruptionTarget gives the reason of a deletion if DeletionReason was set at the same time'],
      [inLives, 'the later of DeletionReason and DisruptionTarget wins'],
      [inLives, 'a tie goes to DisruptionTarget'],
    ],
  },
  {
    says: 'A controller that no longer deletes a Pod that it marked sets the condition False.',
    tests: [
      [causes, 'a condition DeletionReason that is False does not count'],
      [inLives, 'a condition that is False has no effect'],
      [daemonSets, 'that is marked but no longer deleted is unmarked'],
      [
        'src/controllers/replicas/reconcile.test.ts',
        'a Pod that is kept and has the reason %s with the status %s is unmarked: %s',
      ],
      [statefulSets, 'that is marked but no longer deleted is unmarked'],
    ],
  },
  {
    says: 'ReplicaSet: Replaced if its Deployment has a newer revision, else ScaledDown.',
    tests: [
      ['src/controllers/replicas/reconcile.test.ts', 'the Pods of the newest revision are scaled down'],
      ['src/controllers/replicas/reconcile.test.ts', 'the Pods of an older revision are replaced'],
    ],
  },
  {
    says: 'StatefulSet: ScaledDown for ordinals outside the range, else Replaced.',
    tests: [[statefulSets, 'gets the reason ScaledDown outside of the range, and Replaced on an update']],
  },
  {
    says: 'DaemonSet: Replaced on update, ScaledDown where a node no longer fits.',
    tests: [[daemonSets, 'gets the reason Replaced on an update, and ScaledDown where its node no longer fits']],
  },
  {
    says: 'Job: ScaledDown for parallelism and suspend, Completed or DeadlineExceeded when the Job itself has ended.',
    tests: [['src/controllers/job/job.test.ts', 'deletes them with the reason %s']],
  },
  {
    says: 'Garbage collector and namespace deletion: OwnerDeleted.',
    tests: [
      [
        'src/controllers/garbage-collector/garbage-collector.test.ts',
        'a Pod with defer containers is deleted for the reason OwnerDeleted',
      ],
      [
        'src/controllers/namespace/namespace.test.ts',
        'the Pods of a namespace with defer containers are deleted for the reason OwnerDeleted',
      ],
    ],
  },
  {
    says: 'Taint manager: Evicted.',
    tests: [
      ['src/controllers/taint-eviction/taint-eviction.test.ts', 'Pods that do not tolerate the taint are deleted'],
      [causes, 'an eviction for a taint has the reason Evicted'],
    ],
  },
  {
    says: 'Preemption by the scheduler or by the node for a critical Pod: Preempted.',
    tests: [
      ['src/scheduler/scheduler.test.ts', 'Pods of lower priority are preempted'],
      [causes, 'a preemption has the reason Preempted'],
      [
        'src/simulation/node-terminations.test.ts',
        'a Pod that is preempted for a critical one has its own grace period, and fails',
      ],
      [
        admission,
        'a critical Pod starts on a full node after another Pod is preempted and its defer containers have run',
      ],
    ],
  },
  {
    says: "`when` looks at the app containers when the entry's turn comes: `Succeeded` if every one exited with 0, `Failed` if one did not or never ran; otherwise the entry is `Skipped`.",
    tests: [
      [defer, 'all app containers exited with 0'],
      [defer, 'one app container failed'],
      [defer, 'for an entry with when Failed, an app container that never ran counts as failed'],
      [inLives, 'when %s depends on the exit codes of the app containers: %i'],
      [inLives, 'when: an app container that never ran has failed'],
      [onContainers, 'when: PostExit entries run only after the outcome of the app containers that they name'],
    ],
  },
  {
    says: "Native sidecars do not count. An app that ends on the Pod's own stop signal with 143 or 137 has failed too: combine `when: Failed` with `onReasons: [Completed]` for failures of the app itself.",
    tests: [
      [defer, 'sidecars do not count for the field when of an entry'],
      [defer, 'an entry with when Failed and onReasons Completed is due only for failures of the app itself'],
      [inLives, 'when: an app that exits with 143 on its stop signal has failed; native sidecars do not count'],
    ],
  },
];
