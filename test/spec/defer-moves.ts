/** The specification of defer containers, "Time": what moves an end later, and entries that fail or are given up. */
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
const causes = 'src/lifecycle/termination.test.ts';
const stages = 'src/lifecycle/stages.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const stops = 'src/lifecycle/stops.test.ts';
const memory = 'src/lifecycle/memory.test.ts';

const extensions: readonly Sentence[] = [
  {
    says: "**Extension by liveness** (solution 1, `deferContainerGracePeriodExtension: true`). When S (or D) comes and the running entry's livenessProbe last succeeded within periodSeconds + timeoutSeconds and has not reached its failureThreshold, S and D (or D) move by the same amount, so that the stage ends at the last success + periodSeconds + timeoutSeconds.",
    tests: [
      [stages, 'the stage ends at the last success + periodSeconds + timeoutSeconds'],
      [stages, 'a success that is too old extends nothing'],
      [stages, 'a probe that failed extends nothing'],
      [stages, 'failures below failureThreshold take nothing back'],
      [stages, 'at D the success of the probe of a PostExit entry moves D alone'],
      [failures, 'by liveness: when the stage ends it moves to the last success'],
      [failures, 'by liveness: a probe that fails, or none, extends nothing'],
      [played, 'c: an extension by liveness'],
      [e2e, 'extension by liveness: each success of the probe moves the deadline'],
    ],
  },
  {
    says: 'A probe that is due or under way is awaited first.',
    tests: [
      [stages, 'a probe that is due at S is awaited'],
      [stages, 'a probe that is under way at S is awaited'],
    ],
  },
  {
    says: 'An entry whose turn comes in an extended stage has at least initialDelaySeconds + periodSeconds + timeoutSeconds (10 s without a probe), counted as extension.',
    tests: [
      [stages, 'the next entry of an extended stage has time for its first probe'],
      [stages, 'initialDelaySeconds of the next entry count for its minimum'],
      [stages, 'the next entry of an extended stage without a probe has 10 s'],
      [stages, 'the next entry of an extended PostExit stage has time for its first probe too'],
      [stages, 'once D has passed, the next entry of an extended PostExit stage is Skipped'],
      [stages, 'the next entry of a stage that was not extended has no minimum'],
      [stages, 'the first PostExit entry after an extended PreExit stage has its reserve, and no minimum'],
      [played, 'c: an extension by liveness'],
    ],
  },
  {
    says: '**Extension by count** (solution 2). When S (or D) comes while an entry *of that stage* is running or still to run, S and D (or D) move by the interval; the count holds over both stages together.',
    tests: [
      [stages, 'at S an entry that runs moves S and D'],
      [stages, 'at S an entry that is still to run moves S and D'],
      [stages, 'at D an entry that runs moves D alone'],
      [stages, 'at D an entry that is still to run moves D alone'],
      [stages, 'the count holds over both stages'],
      [stages, 'a PreExit stage that is over is not extended'],
      [stages, 'an entry that was told to stop before extends nothing'],
      [failures, 'by count: at the deadline, while entries are due, it moves by S, at most N times'],
      [failures, 'by count: not where no entry of the stage is due, though an app stops slowly'],
      [played, 'b: the same with an extension by count, 2 times 10 s'],
      [e2e, 'extension by count: the deadline moves'],
    ],
  },
  {
    says: "Both keep R whole, are bounded by the node's `maxGracePeriodExtensionSeconds` (default 3600) for one termination, are written to `status.termination.deadline` before they count, and give an Event `ExtendGracePeriod`.",
    tests: [
      [stages, 'at S both kinds of extension keep R whole'],
      [stages, 'extensions of one termination sum to maxGracePeriodExtensionSeconds at most'],
      [stages, 'the entry is not told to stop while the extension is being written'],
      [stages, 'each extension is an Event'],
      [failures, "both are bounded by the node's maxGracePeriodExtensionSeconds"],
      [failures, 'a move is written to the Pod before it counts'],
      ['src/engine/settings.test.ts', 'a new data folder gets the defaults'],
      [matrix, 'an extension is bounded by --max-grace-period-extension'],
      [onTime, 'an extension by count keeps the reserve whole'],
    ],
  },
  {
    says: '`NodeShutdown`, `NodePressure` and a grace period of 0 or 1 s are never extended.',
    tests: [
      [stages, 'in a shutdown of the node'],
      [stages, 'under pressure'],
      [stages, 'with a grace period of 1 s'],
      [stages, 'a Pod that completed by itself with a grace period of 1 s'],
      [failures, 'neither extends an end by'],
      [when, 'deleted by force, with an object that a finalizer holds'],
    ],
  },
  {
    says: '`metadata.deletionTimestamp` is never moved later by any of this.',
    tests: [
      [
        'src/apiserver/registry/deletes.test.ts',
        'metadata.deletionTimestamp stays where the node moves the deadline later',
      ],
      [onTime, 'deletionTimestamp does not move when the deadline does'],
    ],
  },
];

const outageSentences: readonly Sentence[] = [
  {
    says: '**An outage does not count.** Time in which no agent ran, or the runtime did not answer, is taken out: when it is over, S (if the PreExit stage is not over) and D move by its length.',
    tests: [
      [causes, 'moves S and D by its length, and is written'],
      [causes, 'counts from the begin of the termination'],
      [causes, 'is not counted twice'],
      [memory, 'counts no outage twice, whether or not its status was written'],
      [causes, 'does not move S once a PostExit entry has its turn'],
      [causes, 'takes its time out of timeoutSeconds of an entry that did not run meanwhile'],
      [memory, 'goes on with the termination in the status, without the time of the outage'],
      [outages, 'S and D move by its length since the last sign of life, before anything else is done'],
      [outages, 'an app is told to stop before it is killed, though the deadline passed without an agent'],
      [outages, 'an extension that the Pod is entitled to is granted after it'],
      [played, 'e: no agent runs from 3 to 50'],
      [times, 'an outage of the agent, of the runtime, or of both between any two actions costs no entry its turn'],
      [
        onOutages,
        'the engine is dead past the deadline: apps get their stop signal, extensions are granted, PostExit entries run',
      ],
      ['test/long/defer-races.test.ts', 'their entries run once each, and their preStop hooks run'],
    ],
  },
  {
    says: 'For the agent it counts from its last recorded sign of life (written at least every 10 s), for the runtime from its first unanswered call.',
    tests: [
      [
        'src/node/status/sign-of-life.test.ts',
        'readLastSignOfLife returns when the previous agent last renewed the Lease',
      ],
      ['src/node/status/node-lease.test.ts', 'renews the Lease every ten seconds, also after a failed renewal'],
      [outages, 'S and D move by its length since the last sign of life'],
      [outages, 'begun just before the delete: the entries and the hook wait for it, and run'],
      [outages, 'is no failure of a probe: no liveness probe ends a container for it'],
    ],
  },
  {
    says: 'The move is written first; the moves of one termination sum to at most `maxGracePeriodExtensionSeconds`.',
    tests: [
      [stages, 'an end that moved later holds until the status has it'],
      [memory, 'an end in the journal that moved later holds until the status has it'],
      [causes, 'moves the end by maxGracePeriodExtensionSeconds at most, over all outages'],
      [causes, 'moves the end by 3600 s at most by default'],
      [outages, "the moves are bounded by the node's maxGracePeriodExtensionSeconds"],
    ],
  },
  {
    says: 'A preStop hook without a result runs again. An entry whose container ran meanwhile keeps its `timeoutSeconds`.',
    tests: [
      [memory, 'runs a preStop hook without a result again'],
      [causes, 'counts for timeoutSeconds of an entry that ran meanwhile'],
      [outages, 'a preStop hook without a result runs again'],
      [outages, 'an entry whose container ran meanwhile keeps its timeoutSeconds'],
      [outages, 'a reboot takes no timeoutSeconds from the PostExit entry that ran'],
    ],
  },
  {
    says: 'This holds for Pods without entries too (upstream starts the whole grace period again; here what was left of it remains, and a stop signal always has its 2 s).',
    tests: [
      [causes, 'counts for a Pod without entries too'],
      [memory, 'goes on with the journal in a Pod without entries'],
      [stops, 'is killed at %i s'],
      [outages, 'holds for Pods without entries: what was left of the grace period remains'],
      [onOutages, 'the engine is dead past the deadline: apps get their stop signal'],
    ],
  },
];

const failureSentences: readonly Sentence[] = [
  {
    says: "An entry that fails (non-zero exit, its image cannot be pulled or started, its `timeoutSeconds` passed, its liveness probe failed): with `Never` the list moves on; with `OnFailure`/`Always` it is retried with the container back-off (1 s first here, doubling, at most 10 s) until it succeeds, or its `timeoutSeconds` or its stage's time pass.",
    tests: [
      [entryEnds, 'another exit code'],
      [entryEnds, 'its image cannot be pulled'],
      [entryEnds, 'a start that failed ends an entry with Never'],
      [entryEnds, 'a pull in its turn is tried again after 1 s, doubling'],
      [entryEnds, 'a pull that failed ahead of its turn is tried again at once'],
      [entryEnds, 'waits for the back-off, and shows as CrashLoopBackOff'],
      [entryEnds, 'its liveness probe failed'],
      [entryEnds, 'its timeoutSeconds passed between two attempts'],
      [entryEnds, 'S passed between two attempts'],
      [failures, 'with Never the list moves on'],
      [failures, 'it is retried, after 1 s, 2 s, 4 s, 8 s, 10 s, 10 s, until it succeeds'],
      [failures, 'it is retried until the time of its stage passes'],
      [failures, 'its timeoutSeconds end the wait for the next attempt, too'],
      [failures, 'one that is told to stop has failed though it exits 0'],
      [failures, 'what its timeoutSeconds ended is not retried as the sidecars stop after it'],
      [failures, 'one that ends by itself with 0 at the last moment has completed'],
      [failures, 'its image cannot be pulled: with Never the list moves on, and the status says why'],
      [failures, 'its image cannot be pulled: with OnFailure it is retried within its timeout'],
      [failures, 'its liveness probe failed: ended within 2 s, and the list moves on or it is retried'],
      [e2e, 'failures: a timeout, retries'],
      [matrix, 'the liveness probe of an entry failed: the list moves on, or it is retried'],
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
      [reasons, 'the phase of a Pod that completed by itself is'],
      [onContainers, 'failurePolicy: with FailPod the failure of an entry fails a Pod that completed'],
      ['test/long/examples/05-batch-upload.test.ts', 'a report that does not arrive makes the Pod Failed'],
    ],
    awaits: ['src/controllers/job'],
  },
  {
    says: 'An entry that hangs can be given up: `PUT /api/v1/namespaces/NS/pods/NAME/defer` with the kind `DeferControl` (lifepod.io/v1, `skip: ENTRY`), or `lifepod skip POD ENTRY`. It is stored in `status.termination.skip` before it acts.',
    tests: [
      [control, 'is recorded in the status'],
      [served, 'an entry is given up, and an Event on the Pod names the user'],
      [served, 'a status write that was made without it loses no entry that was given up'],
      [reasons, 'stays given up for the next agent'],
      ['test/contract/client-http.test.ts', 'lifepod skip PUTs a DeferControl to the subresource defer of the Pod'],
      ['src/cli/skip.test.ts', 'an entry is skipped %s'],
      [commands, 'a running entry is stopped, one still to come is skipped, and the list goes on'],
    ],
  },
  {
    says: 'An entry whose turn has not come is skipped at its turn; a running one is told to stop and ends with the reason `GivenUp`; one that has ended: 200, no change.',
    tests: [
      ['src/lifecycle/defer.test.ts', 'it was given up before its turn'],
      [entryEnds, 'a client that gives it up'],
      [entryEnds, 'given up while its image is pulled'],
      [reasons, 'is told to stop where it runs and ends with GivenUp; the list goes on'],
      [reasons, 'is skipped at its turn where that has not come, and is left alone where it has ended'],
      [control, 'an entry that has ended'],
      [kubectl, 'changes nothing for an entry that has ended, and refuses an unknown one'],
      [onContainers, 'lifepod skip ends an entry that ignores its stop signal'],
    ],
  },
  {
    says: 'A Pod that is not terminating: 409; an unknown entry: 422.',
    tests: [
      [control, 'is a conflict in a Pod that is not terminating'],
      [control, 'an unknown entry'],
      [served, 'before the node has recorded the termination'],
      [served, 'of another name'],
    ],
  },
  {
    says: 'The verb is update on `pods/defer`; the Event names the user.',
    tests: [
      [kubectl, 'is in discovery, with its verb and its kind'],
      [control, 'is answered with what was asked, and gives an Event that names the user'],
      [kubectl, 'gives up an entry; the Event names the user'],
    ],
  },
  {
    says: 'With `failurePolicy: FailPod` an entry fails the Pod if it ended in any way but Completed, "not due" or by its `when`; GivenUp and the end of the grace period are failures.',
    tests: [
      [entryEnds, 'an entry that completed does not'],
      [entryEnds, 'an entry that was given up fails the Pod'],
      [entryEnds, 'an entry at its deadline fails the Pod'],
      [entryEnds, 'an entry without time fails the Pod'],
      [entryEnds, 'an entry that was not due does not'],
      [entryEnds, 'an entry skipped by its `when` does not'],
      [reasons, 'an entry that is not due, or not for this outcome, does not fail the Pod'],
      [reasons, 'an entry that was given up, or that the end of the grace period stopped, fails the Pod'],
    ],
  },
];

export const moves: readonly Sentence[] = [...extensions, ...outageSentences, ...failureSentences];
