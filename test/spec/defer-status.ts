/** The specification of defer containers: status and events. */
import type { Sentence } from './sentence.ts';

const api = 'src/api/core/v1/pod/';
const orderTests = 'src/simulation/defer-order.test.ts';
const failures = 'src/simulation/defer-failures.test.ts';
const status = 'src/simulation/defer-status.test.ts';
const properties = 'src/simulation/defer.property.test.ts';
const kubectl = 'test/integration/defer-api.test.ts';
const e2e = 'test/e2e/defer.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';

export const shown: readonly Sentence[] = [
  {
    says: "Before termination every entry's status is waiting, reason PodRunning.",
    tests: [
      [status, 'before termination every entry waits with the reason PodRunning'],
      [matrix, 'an app that crashes and restarts: the entries stay PodRunning'],
    ],
  },
  {
    says: 'During it, entries waiting for earlier ones have reason PendingDefer; the running one is running; ended ones terminated.',
    tests: [
      [status, 'during it, entries wait with PendingDefer, run, and end'],
      [status, 'the phase is Terminating while the list is due or runs'],
    ],
  },
  {
    says: 'Completed, Error, OOMKilled, DeadlineExceeded or Skipped (exit code 0 is not claimed: it is 137).',
    tests: [
      [orderTests, 'at the deadline there are 2 s more'],
      [failures, 'its timeoutSeconds bound all attempts'],
      [e2e, 'failures: a timeout, retries, an image that cannot be pulled'],
      [matrix, 'an entry that takes too much memory is OOMKilled'],
      [properties, 'one that was Skipped has not run'],
    ],
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
      [e2e, 'a deletion runs them in order, with the app stopped between'],
      [matrix, 'attach and port-forward reach an entry'],
    ],
  },
  {
    says: 'The phase is Terminating only while defer containers are due or running.',
    tests: [
      [status, 'the phase is Terminating while the list is due or runs'],
      [properties, 'the phase is Terminating only while an entry has not'],
    ],
  },
  {
    says: 'The log is also served by `lifepod logs`.',
    tests: [
      [e2e, 'a deletion runs them in order, with the app stopped between'],
      ['test/e2e/clients.test.ts', 'logs --all-containers: after the app containers, before the ephemeral ones'],
      ['test/e2e/clients.test.ts', 'logs -f: to the last word of the last entry'],
    ],
  },
];
