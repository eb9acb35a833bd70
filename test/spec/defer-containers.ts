/**
 * The specification of defer containers, sentence by sentence, each with the tests that hold lifepod to it.
 * test/tidy/spec.test.ts checks that the tests named here exist.
 */
import { termination } from './defer-order.ts';
import { shown } from './defer-status.ts';
import { occasions } from './defer-when.ts';
import type { Sentence } from './sentence.ts';

const api = 'src/api/core/v1/pod/';
const orderTests = 'src/simulation/defer-order.test.ts';
const failures = 'src/simulation/defer-failures.test.ts';
const status = 'src/simulation/defer-status.test.ts';
const recovery = 'src/simulation/defer-recovery.test.ts';
const properties = 'src/simulation/defer.property.test.ts';
const kill = 'test/long/defer-kill.test.ts';
const kubectl = 'test/integration/defer-api.test.ts';
const e2e = 'test/e2e/defer.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';

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
      tests: [
        [`${api}older-forms.test.ts`, 'the statuses are mirrored'],
        [matrix, 'the annotation: its entries run, their statuses are mirrored'],
      ],
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

  'When the list runs': occasions,

  'The order of a termination': termination,

  'Status and events': shown,

  'What an entry can know': [
    {
      says: 'The downward API offers status.termination.reason, .deadline and .exitCodes to defer containers, as env fieldRef.',
      tests: [
        [`${api}validate-defers.test.ts`, 'is offered to defer containers, as env'],
        [`${api}validate-defers.test.ts`, 'is not offered to init and app containers'],
        [e2e, 'an eviction through the API: entries know the reason, the deadline, and after the exit its codes'],
        [e2e, 'a Pod that completes by itself runs them once, as exit work'],
        [e2e, 'activeDeadlineSeconds: they run within the grace period'],
        ['test/long/eviction.test.ts', 'a soft threshold ends one Pod after the other'],
        ['test/long/shutdown.test.ts', 'ends Pods by priority within the periods'],
        ['test/e2e/admission.test.ts', 'others make way for a Pod of a higher class'],
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
        ['src/node/container-resources.test.ts', 'sidecars and the highest PreExit entry beside the app containers'],
        [
          'test/e2e/resources.test.ts',
          'count the highest PreExit entry beside the app containers, and a PostExit entry after them',
        ],
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
        [matrix, 'images are pulled once the Pod runs; one that cannot be is an Event, and the Pod stays Ready'],
        [matrix, 'with prePullDeferImages false they are pulled in their turn'],
      ],
    },
    {
      says: 'They are not garbage-collected while the Pod is on the node.',
      tests: [['test/e2e/image-gc.test.ts', 'what containers run and what Pods are to run yet stays']],
    },
    {
      says: 'Volumes stay mounted, and tokens keep being rotated, until the list has ended.',
      tests: [
        [orderTests, 'volumes are unmounted once the list has ended, and not before'],
        ['test/e2e/defer-engine.test.ts', 'volumes stay mounted until the list has ended'],
        [
          'test/integration/volumes.test.ts',
          'gets new tokens until its volumes are unmounted, also while the Pod is being deleted',
        ],
        [
          'src/apiserver/registry/writes.test.ts',
          'a token is issued for the account and the Pod that it is bound to, also while that ends',
        ],
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
    // lifepod serves no workloads and no budgets: this is what their controllers go by.
    {
      says: "A StatefulSet's successor with the same name is not created before the list has ended and the Pod is gone.",
      tests: [[matrix, 'another Pod of the name cannot be made before the list has ended, and then can']],
    },
    {
      says: 'A Job counts a Pod as finished only after its list has ended.',
      tests: [
        ['src/simulation/defer-when.test.ts', 'it runs once as exit work, then the phase is'],
        [e2e, 'a Pod that completes by itself runs them once, as exit work'],
      ],
    },
    {
      says: 'A PodDisruptionBudget counts a Pod in its list as disrupted from T0.',
      tests: [[orderTests, 'the termination is written before anything of it begins, and Ready is False at once']],
    },
  ],
};
