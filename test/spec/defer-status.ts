import type { Sentence } from './sentence.ts';

const fields = 'src/api/core/v1/pod/defer-containers.test.ts';
const kubectl = 'test/integration/defer-api.test.ts';
const e2e = 'test/e2e/defer.test.ts';
const clients = 'test/e2e/clients.test.ts';
const kept = 'test/e2e/defer-kept.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const failures = 'src/simulation/defer-failures.test.ts';
const inLives = 'src/simulation/defer-status.test.ts';
const reasons = 'src/simulation/defer-reasons.test.ts';
const outages = 'src/simulation/defer-outages.test.ts';
const properties = 'src/simulation/defer.property.test.ts';
const status = 'src/lifecycle/status.test.ts';
const conditions = 'src/lifecycle/conditions.test.ts';
const report = 'src/lifecycle/report.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const why = 'src/cli/why/explain.test.ts';
const troubles = 'src/cli/status/pod-troubles.test.ts';
const engine = 'test/e2e/own-engine/defer-engine.test.ts';

const states: readonly Sentence[] = [
  {
    says: "Before termination every entry's status is `waiting`, reason `PodRunning`; where its image could not be pre-pulled, reason `ErrImagePull`/`ImagePullBackOff` with the message (`why` and `status` say so too).",
    tests: [
      [status, 'before the termination every entry waits with the reason PodRunning'],
      [status, 'a failed pull ahead of the turn is shown in the entry'],
      [status, 'an image that is not pulled ahead of the turn'],
      [inLives, 'before termination every entry waits with the reason PodRunning'],
      [why, 'a running Pod with two defer containers whose images cannot be pulled'],
      [troubles, 'a missing image of a defer container'],
      [
        kept,
        'the status of a running Pod, lifepod why and lifepod status report that the image of a defer container cannot be pulled',
      ],
      [
        'test/e2e/defer-commands.test.ts',
        'lifepod why and lifepod status report while the Pod runs that the image of a defer container cannot be pulled',
      ],
      [matrix, 'entries stay PodRunning when an app crashes and restarts'],
    ],
  },
  {
    says: 'During it, entries waiting for earlier ones have reason `PendingDefer`; the running one is `running`; ended ones `terminated` with exit code and reason',
    tests: [
      [status, 'an entry that waits for an earlier one has the reason PendingDefer'],
      [status, 'a running entry has the state running'],
      [status, 'an entry that ended has exit code, reason and times'],
      [
        inLives,
        'during termination, entries wait with PendingDefer, run, and end; the phase is Terminating while the list is due or runs',
      ],
      [inLives, 'the end of an entry stays as it was decided, no matter how long the write of the status takes'],
    ],
  },
  {
    says: '`Completed`, `Error`, `OOMKilled`, `DeadlineExceeded` (told to stop at a deadline; the message says which), `GivenUp`, `SandboxLost`, or `Skipped` (never ran; exit code 137).',
    tests: [
      [entryEnds, 'an entry with exit code 0 is Completed'],
      [entryEnds, 'an entry with a nonzero exit code ends with the reason Error'],
      [entryEnds, 'an entry killed for its memory ends with the reason OOMKilled'],
      [entryEnds, 'its timeoutSeconds, counted from its turn'],
      [entryEnds, 'the end of the PreExit stage'],
      [entryEnds, 'a running PostExit entry is stopped at the deadline'],
      [entryEnds, 'an entry that does not start within its timeoutSeconds ends with the reason DeadlineExceeded'],
      [entryEnds, 'an entry given up while its image is pulled is Skipped'],
      [entryEnds, 'ends a PreExit entry that ran in it'],
      [reasons, 'a running entry that is given up is stopped and ends with GivenUp, and the list continues'],
      [outages, 'after a reboot PreExit entries are skipped, and PostExit entries run in a new sandbox'],
      [
        properties,
        'an entry that the status shows as Completed has succeeded, and one that it shows as Skipped has not run',
      ],
      [e2e, 'the status of failed defer containers shows a timeout, retries, a missing image and the end of the log'],
      [matrix, 'an entry that exceeds its memory limit is OOMKilled'],
    ],
  },
  {
    says: 'Condition `Deferred`: absent before termination; `False` with reason `DeferContainersRunning` during it; then `True` with `DeferContainersSucceeded`, or `False` with `DeferContainersFailed` (the message names them), `DeferContainersSkipped`, `GracePeriodExceeded` or `NodeLost`.',
    tests: [
      [conditions, 'is absent before the termination'],
      [conditions, 'the list is due'],
      [conditions, 'is True once all entries have succeeded'],
      [conditions, 'is False once entries have failed'],
      [conditions, 'Deferred has the reason DeferContainersSkipped if the list did not run'],
      [conditions, 'Deferred has the reason GracePeriodExceeded if an entry was stopped at the deadline'],
      [conditions, 'Deferred has the reason NodeLost if the node was lost'],
      [conditions, 'does not change once it is final'],
      [inLives, 'the condition Deferred is absent, then False with DeferContainersRunning, then has the result'],
      [failures, 'with Never the list continues after a failed entry'],
    ],
  },
  {
    says: '`kubectl get pods`: STATUS is `Defer:i/n`, i the entries that have ended in any way, while the list runs; `Terminating` otherwise, as upstream. READY counts app containers as ever.',
    tests: [
      [fields, 'while defer containers run, STATUS counts the entries that have terminated in any way'],
      [fields, 'STATUS of a deleted Pod is Terminating while no entry runs'],
      [fields, 'READY counts only app containers'],
      [kubectl, 'kubectl get -w shows Defer:i/n while entries run, and Terminating before and after'],
      [
        e2e,
        'a deletion runs PreExit defer containers, stops the app, runs PostExit ones, and kubectl shows the progress',
      ],
    ],
  },
  {
    says: "The phase `Terminating` is the proposal's. Controllers treat it as an active phase, as Running.",
    tests: [
      [status, 'the phase is Terminating when the list is due'],
      [properties, 'the phase is Terminating only while an entry has not'],
      ['src/api/core/v1/pod/status/phase.test.ts', 'a Pod has terminated only in the phases Succeeded and Failed: %s'],
      [
        'src/controllers/taint-eviction/taint-eviction.test.ts',
        'a completed Pod whose defer containers are running is deleted',
      ],
      [
        'src/api/core/v1/pod/validation/validate-defers.test.ts',
        'the deletion of a completed Pod is graceful while its entries run',
      ],
      ['src/controllers/job/reconcile.test.ts', 'a Pod that completed and runs its defer containers is active'],
    ],
  },
  {
    says: "Some clients know five phases only (`kubectl port-forward` refuses a Pod that is not Running, though its containers serve): the engine's option `--terminating-phase=false` keeps the phase Running (or Pending) while the list runs; condition, column and everything else stay as they are.",
    tests: [
      [status, 'the phase is Running when the list is due, and the engine has --terminating-phase=false'],
      [
        status,
        'the phase is Pending when the list of a Pod that initializes is due, and the engine has --terminating-phase=false',
      ],
      [fields, 'STATUS counts terminated entries also if the phase is not Terminating'],
      [
        'src/node/agent-options.test.ts',
        'factsOf() contains terminatingPhase only if the phase Terminating is turned off',
      ],
      ['src/engine/node-settings.test.ts', 'the phase Terminating can be turned off'],
      [
        engine,
        'with --terminating-phase=false, the phase stays Running while defer containers run, and the status shows their progress',
      ],
    ],
  },
  {
    says: '`status.termination.containers`: for each init and app container that has ended: name, kind, exitCode, reason (`OOMKilled`, …), signal, finishedAt, restartCount.',
    tests: [
      [status, 'has the init and app containers that have ended'],
      ['src/api/core/v1/pod/validation/validate-termination.test.ts', 'containers with the wrong kind'],
      ['test/long/defer-fields.test.ts', 'the downward API shows the termination in files'],
    ],
  },
];

const reports: readonly Sentence[] = [
  {
    says: 'Events bear the field path `spec.deferContainers{name}`: Pulling, Pulled, Created, Started, Killing, BackOff, `DeferContainerFailed`, `DeferContainerSkipped`, `ExtendGracePeriod`; and on the Pod `DeferStarted` and `DeferCompleted`, only if an entry ran.',
    tests: [
      [report, 'Events about an entry have its field path'],
      [report, 'DeferStarted comes with the first run of an entry'],
      [report, 'the Event DeferCompleted reports %s'],
      [report, 'DeferStarted and DeferCompleted are absent if no entry ran'],
      [inLives, 'Events about an entry have the path of the entry, those about the list have none'],
      [inLives, 'every kind of Event about an entry has the path of the entry'],
    ],
  },
  {
    says: '`terminationMessagePolicy` defaults to FallbackToLogsOnError for entries.',
    tests: [
      [fields, 'the termination message of a defer container falls back to the log by default'],
      [e2e, 'the status of failed defer containers shows a timeout, retries, a missing image and the end of the log'],
    ],
  },
  {
    says: "Logs, exec, attach and port-forward accept an entry's name as any container's.",
    tests: [
      ['src/apiserver/streaming/options.test.ts', 'chooseContainer accepts the container %s'],
      ['src/apiserver/streaming/streams.test.ts', 'exec and attach accept the name of a defer container'],
      [
        clients,
        'lifepod logs --all-containers prints defer containers that have started, after app containers and before ephemeral containers',
      ],
      [
        clients,
        'lifepod logs -f prints all lines up to the last line of the last defer container while the Pod is deleted',
      ],
      [kubectl, 'the log subresource accepts the name of an entry'],
      [
        e2e,
        'a deletion runs PreExit defer containers, stops the app, runs PostExit ones, and kubectl shows the progress',
      ],
      [matrix, 'attach and port-forward reach an entry'],
    ],
  },
  {
    says: '(`kubectl logs -c` and `kubectl edit` refuse what their typed structs do not know: `lifepod logs` and `kubectl edit` of the annotation form work.)',
    tests: [
      [kubectl, 'kubectl logs -c refuses the name of an entry'],
      [kubectl, 'kubectl edit cannot change the list'],
      [kubectl, 'kubectl edit changes the annotation of a template'],
      [
        clients,
        'lifepod logs -f prints all lines up to the last line of the last defer container while the Pod is deleted',
      ],
    ],
  },
  {
    says: 'Metrics: lists run, entries by outcome, seconds a list took.',
    tests: [['src/node/usage/pod-metrics.test.ts', 'a list of defer containers is counted once when it has ended']],
  },
];

export const shown: readonly Sentence[] = [...states, ...reports];
