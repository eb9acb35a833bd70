import type { Sentence } from './sentence.ts';

const e2e = 'test/e2e/defer.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const onContainers = 'test/long/defer-fields.test.ts';
const when = 'src/simulation/defer-when.test.ts';
const recovery = 'src/simulation/defer-recovery.test.ts';
const reasons = 'src/simulation/defer-reasons.test.ts';
const outages = 'src/simulation/defer-outages.test.ts';
const defer = 'src/lifecycle/defer.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const causes = 'src/lifecycle/termination-causes.test.ts';
const status = 'src/lifecycle/status.test.ts';
const conditions = 'src/lifecycle/conditions.test.ts';
const deletion = 'src/api/core/v1/pod/strategy.test.ts';
const node = 'test/e2e/own-engine/node.test.ts';
const eviction = 'test/long/eviction.test.ts';
const shutdown = 'test/long/shutdown.test.ts';
const admission = 'test/e2e/own-engine/admission.test.ts';

export const occasions: readonly Sentence[] = [
  {
    says: 'the Pod ends because | the list | deleted, evicted through the API, preempted, drained, scaled down, replaced | runs, within the grace period in force',
    tests: [
      [
        when,
        'after a delete, PreExit entries run in order, the app stops, then PostExit entries run, within the grace period',
      ],
      [when, 'EvictionByEvictionAPI'],
      [when, 'PreemptionByScheduler'],
      [reasons, 'is that of the condition DeletionReason'],
      [
        e2e,
        'a deletion runs PreExit defer containers, stops the app, runs PostExit ones, and kubectl shows the progress',
      ],
      [
        'test/e2e/own-engine/defer-engine.test.ts',
        'lifepod down runs the defer containers of all Pods and waits until they have ended',
      ],
      [e2e, 'defer containers of an evicted Pod get the reason, the deadline and the exit codes as variables'],
      [node, 'draining the node deletes its Pods after their defer containers have run'],
      [node, 'a NoExecute taint evicts Pods that do not tolerate the taint, and their defer containers run first'],
      [admission, 'the scheduler preempts a Pod of a lower priority, and the defer containers of this Pod run first'],
    ],
  },
  {
    says: "all app containers completed by themselves (restartPolicy OnFailure or Never) | runs once, as exit work: no app container is left, so PreExit and PostExit entries run in order; the phase is Terminating until the list has ended, then Succeeded or Failed by the app containers (and by entries with failurePolicy FailPod). The grace period counts from the last exit. Deleting the Pod later does not run the list again; deleting it meanwhile shortens the deadline to the delete's if that is earlier",
    tests: [
      [when, 'after app containers exited on their own with %i, the list runs once, then the phase is %s'],
      [
        when,
        'the phase of a finished Pod is Terminating until the list has ended, not while its sidecar stops (init container exits with %i)',
      ],
      [when, 'the list of a Pod that completes on its own starts after the last exit of an app container'],
      [when, 'a delete of a Pod that completed on its own does not run the list again'],
      [when, 'a delete with %i s while the list of a completed Pod runs moves the deadline only earlier'],
      [
        reasons,
        'failurePolicy %s: after an entry that exits with %i, the phase of a Pod that completed on its own is %s',
      ],
      [defer, 'in a Pod that completed, the PreExit entries run too'],
      [status, 'the phase is Terminating when the list is due after the exit work began'],
      [causes, 'the grace period of a completed Pod counts from the last exit'],
      [causes, 'a deletion during the exit work moves the end earlier but keeps the reason'],
      [e2e, 'a Pod that completes runs its defer containers once, and does not repeat them when it is deleted'],
      [matrix, 'a delete of a Pod that has completed shortens the deadline of its list'],
      ['test/long/examples/05-batch-upload.test.ts', 'a later deletion does not upload again'],
    ],
  },
  {
    says: '`activeDeadlineSeconds` passed | runs within the grace period',
    tests: [
      [when, 'after activeDeadlineSeconds, the list runs within the grace period, which counts from then'],
      [causes, 'activeDeadlineSeconds counts from the start of the Pod, and is followed by the grace period'],
      [e2e, 'defer containers run within the grace period after the Pod has exceeded activeDeadlineSeconds'],
    ],
  },
  {
    says: 'node pressure, soft threshold | runs within min(grace, the configured maximum)',
    tests: [
      [when, 'under node pressure that grants %i s, the list runs within the shorter of that and the grace period'],
      [
        causes,
        'a node that grants %i s to a Pod with a grace period of 30 s leaves it %i s from the decision of the node',
      ],
      [eviction, 'a soft memory threshold ends one Pod after the other, with grace for defer containers'],
    ],
  },
  {
    says: 'node pressure, hard threshold | skipped; recorded',
    tests: [
      [when, 'under hard node pressure, the list is skipped, which the status and Events show'],
      [defer, 'an entry is skipped if the node has no time'],
      [eviction, 'the Pod that fills the disk is evicted immediately, without its defer containers'],
    ],
  },
  {
    says: 'graceful node shutdown | runs within min(grace, the shutdown grace left for this Pod)',
    tests: [
      [when, 'at a node shutdown, the list runs within the time that is left for the Pod'],
      [shutdown, 'shutdown-node ends Pods by priority within their periods'],
    ],
  },
  {
    says: "the delete's effective grace period is 0 (`--grace-period=0 --force`, or `terminationGracePeriodSeconds: 0`) | skipped; the record of the Pod's life names the entries that did not run",
    tests: [
      [when, 'after a forced deletion, no entry runs and no Event reports the list'],
      [when, 'after a forced deletion whose object a finalizer keeps, no extension makes time for the list'],
      [defer, 'an entry is skipped if the Pod was deleted with a grace period of 0'],
      [deletion, 'is immediate if the Pod has a grace period of 0'],
      ['src/lifecycle/report.test.ts', 'entries of a removed object that did not run are recorded as skipped'],
      [
        'src/lifecycle/termination-waves.test.ts',
        'a removed object runs no list, and its containers are killed after 2 s',
      ],
      [e2e, 'a deletion with --grace-period=0 --force runs no defer container'],
    ],
  },
  {
    says: 'never scheduled, or no container had started | skipped; deletion is immediate',
    tests: [
      [when, 'if no init container had started, the list is skipped and the deletion is immediate'],
      [defer, 'a PostExit entry is skipped if no container had started'],
      [defer, 'a PostExit entry is skipped if a container was created but never started'],
      [deletion, 'is immediate if the Pod has no node'],
      [matrix, 'a Pod deleted before an init container started is gone immediately, and its entries are skipped'],
    ],
  },
  {
    says: 'deleted, or failed, while initializing (an init container had started, no app container had) | PreExit entries are skipped, PostExit entries run: what was half built is cleaned up',
    tests: [
      [when, 'after a delete during initialization, PreExit entries are skipped and PostExit entries run'],
      [when, 'after a failed initialization, PostExit entries run'],
      [defer, 'a PreExit entry is skipped if no app container had started'],
      [defer, 'a PostExit entry is not skipped if only an init container had started'],
      [matrix, 'a Pod deleted while it initializes skips PreExit entries and runs PostExit entries'],
      [matrix, 'a Pod that fails while it initializes skips PreExit entries, runs PostExit entries'],
    ],
  },
  {
    says: 'every app container is waiting in CrashLoopBackOff | PreExit entries run: the sandbox, its network and volumes are there',
    tests: [
      [outages, 'PreExit entries run if every app container waits in CrashLoopBackOff'],
      [defer, 'PreExit entries run while app containers back off'],
      [onContainers, 'PreExit entries run while every app container waits in CrashLoopBackOff'],
    ],
  },
  {
    says: 'an app container crashes and restarts in a living Pod | not run',
    tests: [
      [when, 'the list does not run when an app container of a running Pod crashes and restarts'],
      [defer, 'the list does not run when a container of a running Pod crashes'],
      [matrix, 'entries stay PodRunning when an app crashes and restarts'],
    ],
  },
  {
    says: 'the node crashed, or the sandbox was lost | if the Pod is still bound (a reboot counts as an outage): a new sandbox, PreExit entries not yet done are skipped (there is no app left), PostExit entries run; otherwise `NodeLost` is recorded',
    tests: [
      [when, 'after the sandbox is lost, unfinished PreExit entries end and PostExit entries run in a new sandbox'],
      [when, 'a PostExit entry that ran when the sandbox was lost runs again in the new one'],
      [outages, 'after a reboot PreExit entries are skipped, and PostExit entries run in a new sandbox'],
      [recovery, 'a new agent creates a sandbox for PostExit entries if the old one is lost and there is time'],
      [recovery, 'a new agent records NodeLost if the sandbox is lost and the deadline has passed'],
      [entryEnds, 'a lost sandbox'],
      [when, 'a PreExit entry that ended just before the sandbox is lost has run, even if no status shows that yet'],
      [
        'src/simulation/lost-sandbox.test.ts',
        'neither containers in a lost sandbox nor defer containers that run again have more time than the Pod',
      ],
      [
        'src/simulation/lost-sandbox.test.ts',
        'an entry that exits with 0 because it was stopped in a lost sandbox runs again',
      ],
      [conditions, 'Deferred has the reason NodeLost if the node was lost'],
      [
        e2e,
        'the loss of the sandbox ends a PreExit defer container, and PostExit defer containers run in a new sandbox',
      ],
      [
        'test/long/defer-node-lost.test.ts',
        'after a failure of the machine, PostExit entries run in a new sandbox, even if the deadline has passed',
      ],
    ],
  },
];
