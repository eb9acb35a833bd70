/** Restarts of the agent, workloads, the example lives, and the changes from version 1. */
import type { Sentence } from './sentence.ts';

const fields = 'src/api/core/v1/pod/defer-containers.test.ts';
const settings = 'src/api/core/v1/pod/compatibility/defer-settings.test.ts';
const resources = 'src/api/core/v1/pod/resources.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const kill = 'test/long/defer-kill.test.ts';
const onTime = 'test/long/defer-time.test.ts';
const onOutages = 'test/long/defer-outages.test.ts';
const contract = 'test/contract/runtime-contract.ts';
const order = 'src/simulation/defer-order.test.ts';
const when = 'src/simulation/defer-when.test.ts';
const inLives = 'src/simulation/defer-status.test.ts';
const recovery = 'src/simulation/defer-recovery.test.ts';
const outages = 'src/simulation/defer-outages.test.ts';
const properties = 'src/simulation/defer.property.test.ts';
const times = 'src/simulation/defer-time.property.test.ts';
const played = 'src/simulation/lives-of-the-specification.test.ts';
const causes = 'src/lifecycle/termination-causes.test.ts';
const stages = 'src/lifecycle/termination-stages.test.ts';
const memory = 'src/lifecycle/initial-memory.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const defer = 'src/lifecycle/defer.test.ts';

export const survival: readonly Sentence[] = [
  {
    says: 'Before each step its intent is written (entry, attempt, container ID, deadline).',
    tests: [
      [defer, 'the first entry is announced in the status, then started'],
      [entryEnds, 'is announced in the status with its number, then started'],
      [stages, 'the journal has the termination too'],
      [inLives, 'an attempt is announced in the status before it starts'],
      [properties, 'an attempt starts only once the status has announced it'],
    ],
  },
  {
    says: 'After a restart of the agent, at any point, the list goes on where it was: a running entry is re-adopted, a finished one is not run again.',
    tests: [
      [memory, 'a running entry continues under a new agent'],
      [memory, 'an entry that succeeded while no agent ran does not run again'],
      [recovery, 'a new agent adopts the running entry'],
      [recovery, 'a new agent does not run an entry again that has ended, even if only the runtime shows its end'],
      [
        recovery,
        'an entry that succeeded after its timeoutSeconds, while no agent could stop it, has the reason DeadlineExceeded',
      ],
      [recovery, 'a run that failed after the status recorded its start counts as failed'],
      [
        inLives,
        'the end of an entry is written to the status before its container is removed, even after the deadline',
      ],
      [inLives, 'a crash at any action does not change how the list ends: a start that is under way %s'],
      [properties, 'a crash of the agent does not change how the list ends'],
      [kill, 'each entry succeeds once although the engine is killed when the entry is'],
      [onOutages, 'although the engine and containerd are killed repeatedly, each entry runs once'],
    ],
  },
  {
    says: "A crash between the start of an entry and its record may run that attempt's container once only: the name and attempt of the container make the start idempotent.",
    tests: [
      [contract, 'CreateContainer creates one container per name and attempt'],
      [contract, 'StartContainer does not start a running container again'],
      [memory, 'a new agent starts an announced attempt under the same number'],
      [memory, 'a failed attempt that was only announced is retried once'],
      [memory, 'a failed attempt that the status showed as running is not retried'],
      [
        recovery,
        'a run that failed before the status recorded its start is repeated once, even with restartPolicy Never',
      ],
      [outages, 'a start with an unknown outcome runs the entry once: effect %s'],
      [properties, 'entries run at most once to success'],
      [kill, 'each entry succeeds once although the engine is killed between steps'],
    ],
  },
];

export const workloads: readonly Sentence[] = [
  {
    says: '`deferContainers` is a field of Pod templates everywhere (Deployment, StatefulSet, DaemonSet, Job, CronJob, ReplicaSet, ReplicationController, PodTemplate).',
    tests: [
      [fields, 'the type PodTemplateSpec contains defer containers'],
      ['src/api/core/v1/pod-template/pod-template.test.ts', 'defer containers of a template'],
      ['src/api/apps/v1/daemon-set/daemon-set.test.ts', 'the rules for a DaemonSet with %s'],
      [
        'src/api/apps/v1/stateful-set/stateful-set.test.ts',
        'the defer containers of a StatefulSet are validated, and may mount the volumes of its claims',
      ],
      ['src/api/apps/v1/deployment/deployment.test.ts', 'the rules for a Deployment with %s'],
      ['src/api/apps/v1/replica-set/replica-set.test.ts', 'the rules for a ReplicaSet with %s'],
      [
        'src/api/core/v1/replication-controller/replication-controller.test.ts',
        'the rules for a ReplicationController with %s',
      ],
    ],
  },
  {
    says: "A StatefulSet's successor with the same name is not created before the list has ended and the Pod is gone.",
    tests: [
      [matrix, 'a Pod with the same name can be created only after the list has ended'],
      [
        'src/controllers/stateful-set/stateful-set.test.ts',
        'has no successor before its list has ended and the Pod is gone',
      ],
    ],
  },
  {
    says: 'A Job counts a Pod as finished only after its list has ended (`podReplacementPolicy: Failed` waits for it too).',
    tests: [
      [when, 'after app containers exited on their own with %i, the list runs once, then the phase is %s'],
      ['src/controllers/job/job.test.ts', 'counts a Pod only after its list, and does not end before'],
    ],
  },
  {
    says: 'A PodDisruptionBudget counts a Pod in its list as disrupted from T0, exit work included.',
    tests: [
      ['src/controllers/disruption/reconcile.test.ts', 'runs its defer containers without being deleted'],
      [order, 'without a deletionTimestamp the Pod is not Ready from the start of the termination on'],
    ],
  },
];

export const lives: readonly Sentence[] = [
  {
    says: 'a: grace 30, app ignores SIGTERM, PreExit e1 hangs (timeout 20), PostExit p1 (timeout 5), p2 (no timeout) | S = 15; e1 TERM 15, KILL 17; app TERM 17, KILL 19; D = 34; p1 from 19 to 24 (if it hangs: KILL 26); p2 until TERM 34, KILL 36',
    tests: [
      [played, 'life a: an app that ignores SIGTERM, a PreExit entry that hangs, two PostExit entries'],
      [played, 'life a: the first PostExit entry hangs: it is killed 2 s after its timeoutSeconds'],
      [
        causes,
        'life a: the reserve is 15 s for a grace period of 30 s, an entry of 5 s and one without timeoutSeconds',
      ],
    ],
  },
  {
    says: 'b: as a, with extension by count 2 x 10 | S moves to 25, D to 40; e1 TERM 20, KILL 22; app TERM 22, KILL 25; at 40 p2 still runs: D moves to 50; p2 TERM 50, KILL 52',
    tests: [[played, 'life b: the same as life a, with an extension by count, 2 times 10 s']],
  },
  {
    says: 'c: extension by liveness, e1 probed every 2 s, runs 40 s | e1 ends by itself at 40 in its extended stage; the next entry has its minimum; R is untouched',
    tests: [
      [
        played,
        'life c: an extension by liveness: an entry that runs 40 s ends on its own, the next has its minimum, the reserve is unchanged',
      ],
    ],
  },
  {
    says: "d: as a, second delete with grace 5 at 10 while e1 runs (the API leaves 1 s) | D' = 11, R' = 2, S' = 9: e1 TERM 10, KILL 12; app TERM 12, KILL 14; p1 TERM 16, KILL 18",
    tests: [
      [played, 'life d: a second delete with a grace period of 5 s at 10 s, of which the API leaves 1 s'],
      [
        causes,
        'life d: a second delete at 10 s with 1 s moves the end of the PreExit stage to 9 s and the deadline to 11 s',
      ],
    ],
  },
  {
    says: 'e: sidecar, AfterPreExit, agent dead from 3 to 50 | S and D move by 47 to 57; e1 finishes; hooks run; PostExit keeps R; the sidecar stays until the list has ended',
    tests: [[played, 'life e: no agent runs from 3 s to 50 s, with a sidecar and hooks after the PreExit entries']],
  },
  {
    says: 'f: node shutdown leaves 10 s to a Pod with grace 60 and reserve 30 | R = 5, S = 5, D = 10; no extension',
    tests: [
      [played, 'life f: a node shutdown leaves 10 s to a Pod with a grace period of 60 s and a reserve of 30 s'],
      [causes, 'life f: a node shutdown leaves 10 s to a Pod with a grace period of 60 s and a reserve of 30 s'],
    ],
  },
  {
    says: 'g: `kubectl delete --now` | G = 1: R = 1 (min(R0, 2 s) where R0 allows), stop signals with 2 s each; over within about 9 s',
    tests: [
      [played, 'life g: kubectl delete --now leaves 2 s between each signal and its kill'],
      [causes, 'life g: the reserve is 2 s for a grace period of 1 s'],
      [onTime, 'kubectl delete --now: each container gets its stop signal 2 s before the kill'],
    ],
  },
];

export const changes: readonly Sentence[] = [
  {
    says: '`imageFrom`, `onReasons`, `when`, `failurePolicy`, `postExitGracePeriodSeconds`, `preStopPolicy`, the annotation for settings, `status.termination.containers`, the downward volume, the `defer` subresource and the option for the phase are new.',
    tests: [
      [
        'src/api/core/v1/pod/validation/validate-defers.test.ts',
        'an update accepts a Pod that was stored before preStopPolicy',
      ],
      [settings, 'settings of defer containers in an annotation'],
    ],
  },
  {
    says: 'The rules of time are new: the reserve, 2 s between signal and kill for everyone, outages that do not count, extensions that keep the reserve, `timeoutSeconds` from the decided turn.',
    tests: [
      [times, 'only PostExit entries use the reserve'],
      [times, 'every container has 2 s between its stop signal and its kill'],
      [times, 'an outage of the agent, of the runtime, or of both between any two actions costs no entry its turn'],
      [
        stages,
        'at the end of the PreExit stage, both kinds of extension keep the whole reserve, even if the node allows less',
      ],
      [
        outages,
        'timeoutSeconds count from the decided end of the previous entry, so a slow entry takes no time from the next one',
      ],
    ],
  },
  {
    says: "`deletionTimestamp` is never moved later. Readiness is the probe's while a deletion runs.",
    tests: [
      [
        'src/apiserver/registry/deletes.test.ts',
        'metadata.deletionTimestamp stays the same when the node extends the deadline',
      ],
      [order, 'during a deletion readiness still follows the probes'],
    ],
  },
  {
    says: 'Entries without resources no longer change QoS. References of entries are kept. A start in flight counts as started.',
    tests: [
      [resources, 'an entry without requests and limits does not change the effective resources'],
      ['src/api/core/v1/pod/status/qos.test.ts', 'a defer container without requests and limits'],
      ['src/node/pod/kept-references.test.ts', 'a defer container finds referenced objects that were deleted'],
      [defer, 'a start in flight counts as started'],
    ],
  },
];
