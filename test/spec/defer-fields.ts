import type { Sentence } from './sentence.ts';

const fields = 'src/api/core/v1/pod/defer-containers.test.ts';
const validation = 'src/api/core/v1/pod/validation/validate-defers.test.ts';
const warnings = 'src/api/core/v1/pod/validation/defer-warnings.test.ts';
const settings = 'src/api/core/v1/pod/compatibility/defer-settings.test.ts';
const older = 'src/api/core/v1/pod/compatibility/older-forms.test.ts';
const ends = 'src/api/core/v1/pod/validation/validate-termination.test.ts';
const templates = 'src/api/core/v1/pod-template/pod-template.test.ts';
const stored = 'src/apiserver/registry/defer-fields.test.ts';
const kubectl = 'test/integration/defer-api.test.ts';
const typed = 'test/e2e/defer-kept.test.ts';
const matrix = 'test/long/defer-matrix.test.ts';
const onContainers = 'test/long/defer-fields.test.ts';
const status = 'src/lifecycle/status.test.ts';
const stages = 'src/lifecycle/termination-stages.test.ts';
const defer = 'src/lifecycle/defer.test.ts';
const entryEnds = 'src/lifecycle/defer-ends.test.ts';
const reserve = 'src/lifecycle/termination-causes.test.ts';
const failures = 'src/simulation/defer-failures.test.ts';

export const fieldSentences: readonly Sentence[] = [
  {
    says: 'A Pod without `deferContainers` behaves exactly as upstream.',
    tests: [
      ['src/simulation/lives/lives.test.ts', 'the recorded lives in the file of the group'],
      ['src/lifecycle/termination-waves.test.ts', 'a Pod without defer containers'],
      [fields, 'a Pod without defer containers gets none of their fields'],
    ],
  },
  {
    says: 'deferContainers: # 0..N, in order',
    tests: [
      [fields, 'the type PodTemplateSpec contains defer containers'],
      [kubectl, 'pod.spec.deferContainers'],
      [defer, 'the order of the list'],
    ],
  },
  {
    says: '- name: remove-shard # unique across init, app, defer and ephemeral containers',
    tests: [[validation, 'names are unique across init, app, defer and ephemeral containers']],
  },
  {
    says: 'image: dbutils / imageFrom: db # instead of image: the image of that app or init container / command: [...]',
    tests: [
      [validation, 'image and imageFrom'],
      [entryEnds, 'an entry with imageFrom starts from the image of the other container at its turn'],
      [onContainers, "imageFrom: an entry runs the image that the container has at the entry's turn"],
    ],
  },
  {
    says: 'trigger: PreExit # PreExit (default) | PostExit',
    tests: [[fields, 'the trigger of a defer container is PreExit by default']],
  },
  {
    says: 'onReasons: [ScaledDown] # optional; absent: every reason',
    tests: [
      [fields, 'an empty onReasons is removed'],
      [defer, 'an entry is skipped if its onReasons do not contain the reason'],
    ],
  },
  {
    says: 'when: Always # PostExit only: Always (default) | Succeeded | Failed / failurePolicy: Ignore # Ignore (default) | FailPod',
    tests: [
      [fields, 'by default, entries run after every outcome, and their failure is ignored'],
      [validation, 'onReasons, when and failurePolicy'],
    ],
  },
  {
    says: 'restartPolicy: Never # Never (default) | OnFailure | Always',
    tests: [[fields, 'the restart policy of a defer container is Never by default']],
  },
  {
    says: 'timeoutSeconds: 20 # optional bound on this entry, over all its attempts',
    tests: [[failures, 'the timeoutSeconds of an entry limit all its attempts together (%s)']],
  },
  {
    says: 'livenessProbe: {...} # allowed; readinessProbe, startupProbe and lifecycle are not',
    tests: [[validation, 'probes and hooks']],
  },
  {
    says: 'terminationGracePeriodSeconds: 60 / postExitGracePeriodSeconds: 15 # the part of the grace period that is reserved for PostExit entries',
    tests: [[reserve, 'the reserve of the PostExit stage']],
  },
  {
    says: 'preStopPolicy: Concurrent # Concurrent (default) | AfterPreExit',
    tests: [[fields, 'preStop hooks start at the same time as the entries by default']],
  },
  {
    says: 'deferContainerGracePeriodExtension: false # solution 1 of the proposal',
    tests: [[stages, 'the extension by liveness']],
  },
  {
    says: 'deferContainerGracePeriodExtensionInterval: 10 # seconds S } solution 2: both or neither / deferContainerGracePeriodExtensionCount: 3 # times N }',
    tests: [
      [stages, 'the extension by count'],
      [validation, 'extension of the grace period'],
    ],
  },
  {
    says: 'prePullDeferImages: true # default true',
    tests: [[fields, 'images of defer containers are pulled in advance by default']],
  },
  {
    says: 'phase: Terminating # only while defer containers are due or running',
    tests: [
      [status, 'the phase is Terminating when the list is due'],
      [status, 'the phase is Running when no entry of the list is due for the reason'],
    ],
  },
  {
    says: 'conditions: [{type: Deferred, ...}] / deferContainerStatuses: [...] # one ContainerStatus per entry, as for init containers',
    tests: [
      ['src/lifecycle/conditions.test.ts', 'Deferred'],
      [status, 'the states of entries'],
      [kubectl, 'pod.status.termination and pod.status.deferContainerStatuses'],
    ],
  },
  {
    says: 'termination: {reason, startedAt, deadline, extendedSeconds, containers: [...]}',
    tests: [
      [status, 'status.termination'],
      [ends, 'status.termination'],
      [fields, 'clients cannot set the termination and the statuses of defer containers on create'],
      [
        validation,
        'a status write without the fields of defer containers keeps the termination and the statuses of entries',
      ],
    ],
  },
  {
    says: 'A defer container has every other field of a container (resources, volumes, security context, env, ports, …).',
    tests: [
      [fields, 'a defer container has every other field of a container'],
      [fields, 'the other fields of a defer container have the defaults of an app container'],
      [
        validation,
        'the environment of defer containers has all fields of app containers, and of the termination only the documented ones',
      ],
      [kubectl, 'pod.spec.deferContainers lists no field that is refused'],
      [
        'test/e2e/own-engine/identity.test.ts',
        'init and defer containers have the seccomp profile of the Pod or their own',
      ],
      [
        'test/e2e/defer.test.ts',
        'connections to a host port of a defer container are forwarded to the defer container',
      ],
    ],
  },
  {
    says: '`Always` is treated as `OnFailure`: exit code 0 ends an entry.',
    tests: [
      [entryEnds, 'an entry with exit code 0 and restartPolicy Always is Completed'],
      [failures, 'with %s a failed entry is retried after 1 s, 2 s, 4 s, 8 s, 10 s, 10 s, until it succeeds'],
    ],
  },
  {
    says: 'Typed clients drop fields that they do not know. Therefore: Every field above can also be given as an annotation: `pod.alpha.kubernetes.io/defer-containers` (a JSON array of the entries) and `pod.alpha.kubernetes.io/defer-settings` (a JSON object with the other fields). They are read on create, in Pods and in Pod templates, where the field is absent.',
    tests: [
      [older, 'the annotation with defer containers sets the absent field on create'],
      [settings, 'the annotation with settings sets absent fields on create'],
      [settings, 'settings and entries can both be given in annotations'],
      [templates, 'both forms of defer containers are validated when a PodTemplate is created'],
      [kubectl, 'is read on create, and cannot be changed'],
      [kubectl, 'the annotation with settings sets the other fields, and cannot be changed'],
    ],
  },
  {
    says: '`pod.alpha.kubernetes.io/defer-container-statuses` mirrors the status.',
    tests: [
      [older, 'statuses of defer containers are mirrored into an annotation'],
      [matrix, 'entries of the annotation run, their statuses are mirrored'],
    ],
  },
  {
    says: 'Bad JSON, or both forms present and different, is a validation error on create; the forms are compared on create only.',
    tests: [
      [older, 'an annotation with defer containers that cannot be decoded is a validation error'],
      [older, 'entries that differ between annotation and field are a validation error'],
      [settings, 'an annotation with settings that cannot be decoded is an error at the annotation'],
      [settings, 'each setting that differs between field and annotation is an error'],
      [settings, 'an update does not compare the annotation with settings with the fields'],
      [templates, 'the two forms in a PodTemplate are compared only on create'],
    ],
  },
  {
    says: 'The annotations are immutable on an existing Pod.',
    tests: [
      [older, 'the annotation with defer containers is immutable on an existing Pod'],
      [settings, 'the annotation with settings is immutable on an existing Pod'],
    ],
  },
  {
    says: 'An update (PUT) of an existing Pod that lacks the fields leaves them unchanged: a typed client that reads, changes a label and writes back must succeed and lose nothing.',
    tests: [
      [settings, 'leaves them unchanged'],
      [stored, 'a Pod keeps its defer containers when a PUT without them changes other fields'],
      [kubectl, 'kubectl replace of a Pod without the fields leaves them unchanged'],
      [typed, 'a typed client can replace a Pod without sending the defer fields, and the Pod keeps the fields'],
    ],
  },
  {
    says: 'In a Pod template only the form that was given is stored; a Pod created from it gets the field.',
    tests: [
      [templates, 'a PodTemplate stores defer containers in the form in which they were sent'],
      [older, 'the annotation with defer containers sets the absent field on create'],
      ['src/controllers/job/job.test.ts', 'gives its Pods the field if its template has the annotation'],
    ],
  },
  {
    says: 'A PUT of a template that drops the field removes it (`kubectl replace` must work), with a warning; users of typed clients give the annotation, which such clients keep.',
    tests: [
      [
        templates,
        'an update without the fields of defer containers removes them from a PodTemplate and returns a warning',
      ],
      [templates, 'an update that drops the field and keeps the annotation returns no warning'],
      [stored, 'a PUT without the fields of defer containers removes them from a PodTemplate, with a warning'],
      [kubectl, 'a PodTemplate with the annotation does not get the field; a PUT that drops the field gives a warning'],
      [
        matrix,
        'entries of the annotation run, their statuses are mirrored, and an update by a client without the field keeps them',
      ],
    ],
  },
];

export const validationSentences: readonly Sentence[] = [
  {
    says: 'Names are unique across all lists. All rules of app containers apply.',
    tests: [
      [validation, 'names are unique across init, app, defer and ephemeral containers'],
      [validation, 'rules of app containers apply to defer containers'],
      [validation, 'host ports'],
    ],
  },
  {
    says: 'Exactly one of `image` and `imageFrom`; `imageFrom` names an app or init container.',
    tests: [[validation, 'image and imageFrom']],
  },
  {
    says: 'No readinessProbe, startupProbe or lifecycle.',
    tests: [[validation, 'probes and hooks']],
  },
  {
    says: 'Every PreExit entry stands before every PostExit entry.',
    tests: [[validation, 'PreExit entries before PostExit entries are valid']],
  },
  {
    says: '`trigger`, `when`, `failurePolicy`, `restartPolicy`, `preStopPolicy` and every item of `onReasons` have known values; `when` other than Always needs trigger PostExit. `timeoutSeconds` > 0.',
    tests: [
      [validation, 'trigger, restartPolicy and timeoutSeconds'],
      [validation, 'onReasons, when and failurePolicy'],
      [validation, 'an unknown preStopPolicy'],
    ],
  },
  {
    says: '`postExitGracePeriodSeconds` >= 0 and less than the grace period.',
    tests: [[validation, 'preStopPolicy and postExitGracePeriodSeconds']],
  },
  {
    says: 'Interval > 0 and count > 0, both or neither, and not together with `deferContainerGracePeriodExtension`.',
    tests: [[validation, 'extension of the grace period']],
  },
  {
    says: 'On an existing Pod only `spec.deferContainers[*].image` may change, and not once the Pod is terminating.',
    tests: [
      [validation, 'an update may change the images of defer containers'],
      [validation, 'an update may not change the images of defer containers once %s'],
      [validation, 'an update may not change %s'],
      [validation, 'an update may not reorder defer containers'],
      [kubectl, 'kubectl patch merges an entry by its name'],
      [kubectl, 'kubectl replace changes the image of an entry'],
      [kubectl, 'a patch cannot remove an entry'],
      [validation, 'an update may not %s defer containers'],
      [validation, 'imageFrom may not change'],
      [stored, 'a PUT with an empty list of defer containers is refused, because entries of a Pod cannot be removed'],
      [stored, 'a patch of type %s that removes the defer containers of a Pod is refused'],
      [kubectl, 'client-side apply of another change is refused with the difference'],
      [kubectl, 'the image of an entry cannot change once the Pod is terminating'],
    ],
  },
  {
    says: 'A `timeoutSeconds` longer than the grace period, an entry with restartPolicy OnFailure and no `timeoutSeconds`, a PreExit entry without `timeoutSeconds` (a hang leaves the app containers 2 s), fewer than 10 s between the grace period and `postExitGracePeriodSeconds`, and `deferContainers` with a grace period of 0 ("entries will not run on delete") give a warning.',
    tests: [
      [warnings, 'a timeout longer than the grace period'],
      [warnings, 'a PostExit entry that is retried without a timeout'],
      [warnings, 'a PreExit entry without a timeout'],
      [warnings, 'a reserve that leaves 9 s'],
      [warnings, 'a grace period of 0'],
    ],
  },
];
