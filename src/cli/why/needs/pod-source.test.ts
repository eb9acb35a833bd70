import { container, explains, waiting } from '../explain-fixtures.ts';

const badName = {
  spec: { containers: [container('app', { image: 'Bad:1' })] },
  status: { containerStatuses: [waiting('app', 'InvalidImageName', `couldn't parse image name "Bad:1"`)] },
  sentence: 'p cannot start: "Bad:1", the image of its container app, is not a valid image name.',
};
const badCommand = {
  status: {
    containerStatuses: [waiting('app', 'RunContainerError', 'exec: "/no": stat /no: no such file or directory')],
  },
  sentence: /^p cannot start: /,
};
const mirror = { annotations: { 'kubernetes.io/config.mirror': 'u' } };
const ownedBy = (kind: string, name: string, labels = {}) => ({
  labels,
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: 'u', controller: true }],
});

explains({
  'an image name that is not valid, in a static Pod': {
    ...badName,
    metadata: mirror,
    manifest: '/d/manifests/p.yaml',
    advice: /\ncorrect the name in \/d\/manifests\/p\.yaml: the node then recreates the Pod$/,
  },
  'an image name that is not valid, in a static Pod whose mirror a client has changed': {
    ...badName,
    metadata: mirror,
    spec: { containers: [container('app', { image: 'good:1' })] },
    advice: /\ncorrect the name in its manifest on the node: the node then recreates the Pod$/,
  },
  'a command that the image does not have, in a static Pod': {
    ...badCommand,
    metadata: mirror,
    manifest: '/d/manifests/p.yaml',
    advice: /recreate the Pod.*\nmake such a change in \/d\/manifests\/p\.yaml: the node then recreates the Pod$/,
  },
  'an image name that is not valid, in a Pod of a Deployment': {
    ...badName,
    metadata: ownedBy('ReplicaSet', 'web-5d9', { 'pod-template-hash': '5d9' }),
    advice: /\ncorrect the name in the template of deployment\/web: kubectl set image deployment\/web -n n app=IMAGE$/,
  },
  'an image name that is not valid, in a Pod of a StatefulSet': {
    ...badName,
    metadata: ownedBy('StatefulSet', 'db'),
    advice:
      /\ncorrect the name in the template of statefulset\/db, and delete the Pod if it remains: kubectl set image statefulset\/db -n n app=IMAGE$/,
  },
  'an image name that is not valid, in a Job': {
    ...badName,
    metadata: ownedBy('Job', 'once'),
    workload: { kind: 'Job', title: 'job/once' },
    advice:
      /\ncorrect the name in the manifest of the Job, delete the Job, and create it again: kubectl delete job once -n n$/,
  },
  'an image name that is not valid, in a Pod of a Job that a CronJob may have created': {
    ...badName,
    metadata: ownedBy('Job', 'once'),
    advice: /\ncorrect the name: kubectl set image pod\/p -n n app=IMAGE$/,
  },
  'an image name that is not valid, in a CronJob': {
    ...badName,
    metadata: ownedBy('Job', 'often-29934004'),
    workload: { kind: 'CronJob', title: 'cronjob/often' },
    advice:
      /\ncorrect the name in the template of cronjob\/often, and delete the Job often-29934004: kubectl edit cronjob often -n n$/,
  },
  'a command that the image does not have, in a Pod of a Deployment': {
    ...badCommand,
    metadata: ownedBy('ReplicaSet', 'web-5d9'),
    workload: { kind: 'Deployment', title: 'deployment/web' },
    advice:
      /recreate the Pod.*\nmake such a change in the template of deployment\/web: kubectl edit deployment web -n n$/,
  },
  'a command that the image does not have, in a Pod of a custom controller': {
    ...badCommand,
    metadata: ownedBy('Widget', 'w'),
    advice: /recreate the Pod[^\n]*$/,
  },
});
