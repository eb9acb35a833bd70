/** Says where to change a Pod that a manifest of the node or a template of a workload defines. Pure. */
import { isMirrorPod } from '../../../api/core/v1/pod/mirror.ts';
import { type Action, controllerOf, type Explanation, type Living, type WorkloadRef } from '../subject.ts';

type Sourced = Pick<Living, 'pod' | 'namespace' | 'hints' | 'manifest' | 'workload'>;

/**
 * Returns how to make the change described by `what`, such as `correct the name`; undefined if the Pod itself must be changed.
 * `image`: words such as `app=IMAGE` for kubectl set image, if this command can make the change.
 */
export function changeInSource(subject: Sourced, what: string, image?: string): Action | undefined {
  const { pod, namespace, hints, manifest = 'its manifest on the node' } = subject;
  if (isMirrorPod(pod)) return { description: `${what} in ${manifest}: the node then recreates the Pod` };
  // The template of a ReplicaSet of a Deployment is not the one to change.
  const own = workloadOf(subject);
  const workload = own?.kind === 'Deployment' ? own : (subject.workload ?? own);
  if (workload === undefined) return undefined;
  const { kind, title } = workload;
  if (kind === 'Job')
    return {
      description: `${what} in the manifest of the Job, delete the Job, and create it again`,
      command: hints.kubectl(`delete ${title.replace('/', ' ')} -n ${namespace}`),
    };
  // A change of the template of a CronJob affects only its later Jobs. A Deployment replaces all its Pods.
  const job = controllerOf(pod)?.name;
  const after =
    kind === 'Deployment' ? '' : `, and delete ${kind === 'CronJob' ? `the Job ${job}` : 'the Pod if it remains'}`;
  return {
    description: `${what} in the template of ${title}${after}`,
    command: hints.kubectl(
      image === undefined || kind === 'CronJob'
        ? `edit ${title.replace('/', ' ')} -n ${namespace}`
        : `set image ${title} -n ${namespace} ${image}`,
    ),
  };
}

const TITLED = ['DaemonSet', 'ReplicaSet', 'ReplicationController', 'StatefulSet'];

/** Derives the workload from the Pod. Returns undefined for a Job, because a CronJob may have created it. */
export function workloadOf({ pod }: Pick<Living, 'pod'>): WorkloadRef | undefined {
  const { kind = '', name = '' } = controllerOf(pod) ?? {};
  const hash = pod.metadata.labels?.['pod-template-hash'];
  if (kind === 'ReplicaSet' && hash !== undefined && name.endsWith(`-${hash}`))
    return { kind: 'Deployment', title: `deployment/${name.slice(0, -hash.length - 1)}` };
  return TITLED.includes(kind) ? { kind, title: `${kind.toLowerCase()}/${name}` } : undefined;
}

const RECREATES = /\brecreate (?:it|the Pod)\b/;

/** Adds, after the first advice to recreate the Pod, where to change it, unless the Pod itself must be changed. */
export function withSource(subject: Sourced, explanation: Explanation): Explanation {
  const { actions } = explanation;
  const index = actions.findIndex(({ description }) => RECREATES.test(description));
  const change = index === -1 ? undefined : changeInSource(subject, 'make such a change');
  return change === undefined ? explanation : { ...explanation, actions: actions.toSpliced(index + 1, 0, change) };
}
