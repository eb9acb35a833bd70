/** The section "Time": extensions and outages that move a deadline, and entries that fail or are given up. */
import type { Sentence } from './sentence.ts';

const control = 'src/api/core/v1/pod/defer-control.test.ts';
const served = 'src/apiserver/registry/defer-control.test.ts';
const kubectl = 'test/integration/defer-api.test.ts';
const commands = 'test/e2e/defer-commands.test.ts';
const e2e = 'test/e2e/defer.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const onTime = 'test/long/defer-time.test.ts';
const onContainers = 'test/long/defer-fields.test.ts';
const onOutages = 'test/long/defer-outages.test.ts';
const when = 'src/simulation/defer-when.test.ts';
const failures = 'src/simulation/defer-failures.test.ts';
const reasons = 'src/simulation/defer-reasons.test.ts';
const outages = 'src/simulation/defer-outages.test.ts';
const times = 'src/simulation/defer-time.property.test.ts';
const played = 'src/simulation/lives-of-the-specification.test.ts';
const causes = 'src/lifecycle/termination-causes.test.ts';
const stages = 'src/lifecycle/termination-stages.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const stops = 'src/lifecycle/hooks-and-stops.test.ts';
const memory = 'src/lifecycle/initial-memory.test.ts';

const extensions: readonly Sentence[] = [
  {
    says: "**Extension by liveness** (solution 1, `deferContainerGracePeriodExtension: true`). When S (or D) comes and the running entry's livenessProbe last succeeded within periodSeconds + timeoutSeconds and has not reached its failureThreshold, S and D (or D) move by the same amount, so that the stage ends at the last success + periodSeconds + timeoutSeconds.",
    tests: [
      [stages, 'the stage ends at the last success + periodSeconds + timeoutSeconds'],
      [stages, 'a success that is too old extends nothing'],
      [stages, 'a probe that failed extends nothing'],
      [stages, 'failures below failureThreshold do not shorten an extension'],
      [stages, 'at the deadline, a success of the probe of a PostExit entry moves only the deadline'],
      [
        failures,
        'an extension by liveness moves a stage to the last success + periodSeconds + timeoutSeconds when it ends, until the entry ends',
      ],
      [failures, 'an extension by liveness requires a succeeding probe'],
      [played, 'c: an extension by liveness'],
      [e2e, 'a grace period extension by liveness moves the deadline of defer containers with each probe success'],
    ],
  },
  {
    says: 'A probe that is due or under way is awaited first.',
    tests: [
      [stages, 'a probe that is due at the end of the PreExit stage is awaited'],
      [stages, 'a probe that is under way at the end of the PreExit stage is awaited'],
    ],
  },
  {
    says: 'An entry whose turn comes in an extended stage has at least initialDelaySeconds + periodSeconds + timeoutSeconds (10 s without a probe), counted as extension.',
    tests: [
      [stages, 'the next entry of an extended stage has time for its first probe'],
      [stages, 'initialDelaySeconds of the next entry count toward its minimum'],
      [stages, 'the next entry of an extended stage without a probe has 10 s'],
      [stages, 'the next entry of an extended PostExit stage has time for its first probe too'],
      [stages, 'once the deadline has passed, the next entry of an extended PostExit stage is Skipped'],
      [stages, 'the next entry of a stage that was not extended has no minimum'],
      [stages, 'the first PostExit entry after an extended PreExit stage has its reserve, but no minimum'],
      [played, 'c: an extension by liveness'],
    ],
  },
  {
    says: '**Extension by count** (solution 2). When S (or D) comes while an entry *of that stage* is running or still to run, S and D (or D) move by the interval; the count holds over both stages together.',
    tests: [
      [stages, 'an entry that runs at the end of the PreExit stage moves this end and the deadline'],
      [stages, 'an entry that is yet to run at the end of the PreExit stage moves this end and the deadline'],
      [stages, 'a PostExit entry that runs at the deadline moves only the deadline'],
      [stages, 'a PostExit entry that is yet to run at the deadline moves only the deadline'],
      [stages, 'the count of extensions applies to both stages together'],
      [stages, 'a PreExit stage that is over is not extended'],
      [stages, 'an entry that was stopped before extends nothing'],
      [failures, 'an extension by count moves the deadline when it passes while entries are due'],
      [failures, 'an extension by count requires a due entry of the stage, even if an app stops slowly'],
      [played, 'life b: the same as life a, with an extension by count, 2 times 10 s'],
      [e2e, 'a grace period extension by count moves the deadline of defer containers, but not deletionTimestamp'],
    ],
  },
  {
    says: "Both keep R whole, are bounded by the node's `maxGracePeriodExtensionSeconds` (default 3600) for one termination, are written to `status.termination.deadline` before they count, and give an Event `ExtendGracePeriod`.",
    tests: [
      [stages, 'both kinds of extension keep the whole reserve, even if the node allows less'],
      [stages, 'all extensions of a termination together are at most maxGracePeriodExtensionSeconds'],
      [stages, 'the entry is not stopped while the extension is being written'],
      [stages, 'each extension is reported as an Event'],
      [failures, "both kinds of extensions are limited by the node's maxGracePeriodExtensionSeconds"],
      [failures, 'a moved deadline is written to the Pod before it takes effect'],
      ['src/engine/settings.test.ts', 'settings that are neither given nor recorded have their defaults'],
      [matrix, 'an extension is bounded by --max-grace-period-extension'],
      [onTime, 'an extension by count leaves the reserve unchanged'],
    ],
  },
  {
    says: '`NodeShutdown`, `NodePressure` and a grace period of 0 or 1 s are never extended.',
    tests: [
      [stages, 'in a shutdown of the node'],
      [stages, 'under pressure'],
      [stages, 'with a grace period of 1 s'],
      [stages, 'there is no extension for a Pod that completed on its own with a grace period of 1 s'],
      [failures, 'no extension applies to a termination by %s, or to a grace period of 1 s'],
      [when, 'after a forced deletion whose object a finalizer keeps, no extension makes time for the list'],
    ],
  },
  {
    says: '`metadata.deletionTimestamp` is never moved later by any of this.',
    tests: [
      [
        'src/apiserver/registry/deletes.test.ts',
        'metadata.deletionTimestamp stays the same when the node extends the deadline',
      ],
      [onTime, 'deletionTimestamp stays the same when the deadline moves'],
    ],
  },
];

const outageSentences: readonly Sentence[] = [
  {
    says: '**An outage does not count.** Time in which no agent ran, or the runtime did not answer, is taken out: when it is over, S (if the PreExit stage is not over) and D move by its length.',
    tests: [
      [causes, 'an outage moves the end of the PreExit stage and the deadline by its length, and is recorded'],
      [causes, 'an outage counts from the beginning of the termination'],
      [causes, 'is not counted twice'],
      [memory, 'counts no outage twice, whether or not its status was written'],
      [causes, 'does not move the end of the PreExit stage once a PostExit entry has its turn'],
      [causes, 'an outage does not count toward timeoutSeconds of an entry that did not run during it'],
      [memory, 'continues the termination in the status, without the time of the outage'],
      [outages, 'the end of the PreExit stage and the deadline move by the outage since the last sign of life'],
      [outages, 'an app is stopped before it is killed, even if the deadline passed without an agent'],
      [outages, 'an extension to which the Pod is entitled is granted after an outage'],
      [played, 'life e: no agent runs from 3 s to 50 s'],
      [times, 'an outage of the agent, of the runtime, or of both between any two actions costs no entry its turn'],
      [
        onOutages,
        'after an outage of the engine past the deadline, apps get their stop signal, extensions are granted',
      ],
      [
        'test/long/defer-races.test.ts',
        'entries run once each, and preStop hooks run, in Pods that are deleted while containerd is down',
      ],
    ],
  },
  {
    says: 'For the agent it counts from its last recorded sign of life (written at least every 10 s), for the runtime from its first unanswered call.',
    tests: [
      [
        'src/node/status/sign-of-life.test.ts',
        'readLastSignOfLife returns when the previous agent last renewed the Lease',
      ],
      [
        'src/node/status/node-lease.test.ts',
        'the node renews its Lease every ten seconds, also after a failed renewal',
      ],
      [outages, 'the end of the PreExit stage and the deadline move by the outage since the last sign of life'],
      [outages, 'entries and hooks wait for an outage that began just before the delete, and then run'],
      [outages, 'an outage is not a failed probe, so no liveness probe ends a container'],
    ],
  },
  {
    says: 'The move is written first; the moves of one termination sum to at most `maxGracePeriodExtensionSeconds`.',
    tests: [
      [stages, 'a later deadline delays all actions until the status has it'],
      [memory, 'requests nothing until the status has a later deadline that only the journal has'],
      [causes, 'all outages together move the end by at most maxGracePeriodExtensionSeconds'],
      [causes, 'an outage moves the end by at most 3600 s by default'],
      [outages, "the moves of deadlines by outages are limited by the node's maxGracePeriodExtensionSeconds"],
    ],
  },
  {
    says: 'A preStop hook without a result runs again. An entry whose container ran meanwhile keeps its `timeoutSeconds`.',
    tests: [
      [memory, 'repeats a preStop hook without a result'],
      [causes, 'an outage counts toward timeoutSeconds of an entry that ran during it'],
      [outages, 'a preStop hook without a result runs again'],
      [outages, 'the timeoutSeconds of an entry that ran during the outage are not moved'],
      [outages, 'a reboot does not use up timeoutSeconds of the running PostExit entry, which runs again'],
    ],
  },
  {
    says: 'This holds for Pods without entries too (upstream starts the whole grace period again; here what was left of it remains, and a stop signal always has its 2 s).',
    tests: [
      [causes, 'an outage counts in a Pod without defer containers too'],
      [memory, 'continues the termination in the journal of a Pod without defer containers'],
      [stops, 'is killed at %i s'],
      [
        outages,
        'after an outage, a Pod without entries has the rest of its grace period, and 2 s between signal and kill',
      ],
      [onOutages, 'after an outage of the engine past the deadline, apps get their stop signal'],
    ],
  },
];

const failureSentences: readonly Sentence[] = [
  {
    says: "An entry that fails (non-zero exit, its image cannot be pulled or started, its `timeoutSeconds` passed, its liveness probe failed): with `Never` the list moves on; with `OnFailure`/`Always` it is retried with the container back-off (1 s first here, doubling, at most 10 s) until it succeeds, or its `timeoutSeconds` or its stage's time pass.",
    tests: [
      [entryEnds, 'an entry with a nonzero exit code ends with the reason Error'],
      [entryEnds, 'an entry whose image cannot be pulled ends with the reason Error'],
      [entryEnds, 'a failed start ends an entry with restartPolicy Never'],
      [entryEnds, 'a failed pull in the turn of its entry is retried after 1 s, doubling'],
      [entryEnds, 'a pull that failed before the turn of its entry is retried immediately'],
      [entryEnds, 'the next attempt waits for the back-off, and is shown as CrashLoopBackOff'],
      [entryEnds, 'an entry whose liveness probe failed ends with the reason Error'],
      [entryEnds, 'an entry whose timeoutSeconds passed between two attempts ends with the reason DeadlineExceeded'],
      [entryEnds, 'an entry whose stage ended between two attempts keeps the reason of its last attempt'],
      [failures, 'with Never the list continues after a failed entry'],
      [failures, 'with %s a failed entry is retried after 1 s, 2 s, 4 s, 8 s, 10 s, 10 s, until it succeeds'],
      [failures, 'a failed entry is retried until the time of its stage has passed'],
      [failures, 'timeoutSeconds also end the wait for the next attempt'],
      [failures, 'an entry that was stopped has failed even if it exits 0: %s'],
      [failures, 'an entry that its timeoutSeconds ended is not retried while the sidecars stop'],
      [failures, 'an entry that exits 0 on its own at the last moment has completed'],
      [failures, 'an image that cannot be pulled, with Never: the list continues, and the status has the reason'],
      [failures, 'an image that cannot be pulled, with OnFailure: the entry is retried within its timeout'],
      [
        failures,
        'an entry whose liveness probe failed ends within 2 s, and the list continues or the entry is retried',
      ],
      [e2e, 'the status of failed defer containers shows a timeout, retries, a missing image and the end of the log'],
      [matrix, 'when the liveness probe of an entry fails, the list moves on, or the entry is retried'],
    ],
  },
  {
    says: 'The failure of entries never restarts the Pod.',
    tests: [[failures, 'never restarts the Pod and does not change its phase']],
  },
  {
    says: 'With `failurePolicy: FailPod` a failed entry of a Pod that completed by itself makes the phase Failed, reason `DeferContainerFailed`; a Job counts that.',
    tests: [
      [entryEnds, 'an entry that failed fails the Pod'],
      [entryEnds, 'FailPod does not fail a Pod that was deleted'],
      [
        reasons,
        'failurePolicy %s: after an entry that exits with %i, the phase of a Pod that completed on its own is %s',
      ],
      [onContainers, 'failurePolicy: with FailPod a failed entry makes a completed Pod Failed'],
      ['test/long/examples/05-batch-upload.test.ts', 'a report that does not arrive makes the Pod Failed'],
      ['src/controllers/job/job.test.ts', 'counts a Pod that an entry with failurePolicy FailPod has failed'],
    ],
  },
  {
    says: 'An entry that hangs can be given up: `PUT /api/v1/namespaces/NS/pods/NAME/defer` with the kind `DeferControl` (lifepod.io/v1, `skip: ENTRY`), or `lifepod skip POD ENTRY`. It is stored in `status.termination.skip` before it acts.',
    tests: [
      [control, 'is recorded in the status'],
      [served, 'giving up a defer container records its name in the status, and an Event on the Pod names the user'],
      [served, 'a status write from an older state keeps the defer containers that were given up'],
      [reasons, 'an entry that is given up while no agent runs is ended by the next agent'],
      ['test/contract/client-http.test.ts', 'lifepod skip PUTs a DeferControl to the defer subresource of the Pod'],
      ['src/cli/skip.test.ts', 'lifepod skip reports the outcome for an entry %s'],
      [commands, 'lifepod skip stops a running defer container, skips one that has not started, and the next one runs'],
    ],
  },
  {
    says: 'An entry whose turn has not come is skipped at its turn; a running one is told to stop and ends with the reason `GivenUp`; one that has ended: 200, no change.',
    tests: [
      ['src/lifecycle/defer.test.ts', 'an entry is skipped if it was given up before its turn'],
      [entryEnds, 'a client that gives it up'],
      [entryEnds, 'an entry given up while its image is pulled is Skipped'],
      [reasons, 'a running entry that is given up is stopped and ends with GivenUp, and the list continues'],
      [reasons, 'an entry that is given up before its turn is skipped at its turn; one that has ended does not change'],
      [control, 'an entry that has terminated'],
      [kubectl, 'changes nothing for an entry that has ended, and refuses an unknown one'],
      [onContainers, 'lifepod skip ends an entry that ignores its stop signal'],
    ],
  },
  {
    says: 'A Pod that is not terminating: 409; an unknown entry: 422.',
    tests: [
      [control, 'giving up an entry is a conflict in a Pod that is not terminating'],
      [control, 'an unknown entry'],
      [served, 'a defer container before the node has recorded the termination'],
      [served, 'a defer container that does not exist'],
    ],
  },
  {
    says: 'The verb is update on `pods/defer`; the Event names the user.',
    tests: [
      [kubectl, 'discovery lists the defer subresource with its verb and kind'],
      [control, 'giving up an entry returns the request and records an Event that names the user'],
      [kubectl, 'gives up an entry; the Event names the user'],
    ],
  },
  {
    says: 'With `failurePolicy: FailPod` an entry fails the Pod if it ended in any way but Completed, "not due" or by its `when`; GivenUp and the end of the grace period are failures.',
    tests: [
      [entryEnds, 'an entry that completed does not'],
      [entryEnds, 'an entry that was given up fails the Pod'],
      [entryEnds, 'an entry that exceeded its deadline fails the Pod'],
      [entryEnds, 'an entry without time fails the Pod'],
      [entryEnds, 'an entry that was not due does not'],
      [entryEnds, 'an entry ruled out by its `when` does not fail the Pod'],
      [reasons, 'FailPod: an entry that is not due for the reason or the outcome does not fail the Pod'],
      [reasons, 'FailPod: an entry that was given up, or stopped at the end of the grace period, fails the Pod'],
    ],
  },
];

export const moves: readonly Sentence[] = [...extensions, ...outageSentences, ...failureSentences];
