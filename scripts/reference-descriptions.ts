/**
 * The descriptions of fields whose value is an object. The models have none, because their generator omits a description next to a $ref.
 * The key is the JSON name of the field, or TYPE.FIELD where the meaning of the field depends on the type. A field without an entry gets
 * the description of its type.
 */
export const REFERENCE_DESCRIPTIONS: Readonly<Record<string, string>> = {
  metadata: 'The metadata that every object of its kind has: name, namespace, labels, annotations, and more.',
  spec: 'The desired state of the object.',
  status: 'The observed state of the object. The system writes it; clients only read it.',
  template: 'The Pods that are created from this object.',
  'EphemeralVolumeSource.volumeClaimTemplate':
    'The PersistentVolumeClaim that is created for the volume. The Pod owns the claim: both are deleted together.',

  // Fields of Events, bindings, evictions and options
  target: 'The Node to which the Pod is bound.',
  involvedObject: 'The object that the Event is about.',
  regarding: 'The object that the Event is about.',
  related: 'A second object that the Event involves, if there is one.',
  source: 'The component that reported the Event.',
  deprecatedSource: 'The component that reported the Event, as in the Event of v1.',
  series: 'How often the Event has occurred, and when it did last. Absent if it has occurred once.',
  deleteOptions: 'The options of the deletion of the Pod.',
  details: 'More about the reason of the status, such as the object or the fields that it concerns.',
  preconditions:
    'The conditions under which the object is deleted. If they do not hold, the request fails with 409 Conflict.',
  'TokenReviewStatus.user': 'The user whom the token authenticates.',
  'SelfSubjectReviewStatus.userInfo': 'The user as whom the API server has authenticated the client.',
  boundObjectRef: 'The object to which the token is bound. The token is valid only as long as the object exists.',

  // Fields of roles and bindings
  roleRef: 'The role that the binding grants. It cannot change.',
  aggregationRule:
    'Selects the ClusterRoles whose rules this one has. A controller writes the rules, and reverts other changes of them.',

  // Fields of Pods
  affinity: 'Rules that prefer or require nodes by their labels, or by the Pods that run on them.',
  nodeAffinity: 'Rules about the labels of the nodes.',
  podAffinity: 'Rules that place the Pod near other Pods, such as on the same node or in the same zone.',
  podAntiAffinity: 'Rules that keep the Pod away from other Pods, such as not on the same node or in the same zone.',
  'VolumeNodeAffinity.required': 'The nodes from which the volume can be used.',
  'PersistentVolumeSpec.nodeAffinity':
    'The nodes from which the volume can be used. A Pod with the volume runs only on these.',
  requiredDuringSchedulingIgnoredDuringExecution:
    'The rules that a node must meet when the Pod is scheduled. A later change of the node does not end the Pod.',
  preference: 'The rule for nodes to which the weight applies.',
  podAffinityTerm: 'The rule for Pods to which the weight applies.',
  labelSelector: 'Selects Pods by their labels. Absent selects no Pods.',
  namespaceSelector:
    'Selects Namespaces by their labels, in addition to those that are named. Empty selects all Namespaces.',
  'ClusterTrustBundleProjection.labelSelector': 'Selects the ClusterTrustBundles of the signer by their labels.',
  dnsConfig: 'DNS settings that are added to those that follow from dnsPolicy.',
  os: 'The operating system of the containers. Fields for other operating systems must not be set.',
  'PodSpec.securityContext': 'Security settings of the Pod, and defaults for its containers.',
  'PodSpec.resources': 'The resources that all containers of the Pod may use together.',
  securityContext: 'Security settings of the container. They have precedence over those of the Pod.',
  resources: 'The resources that the container requests, and its limits.',
  'ContainerStatus.resources': 'The requests and limits with which the container runs.',
  'PersistentVolumeClaimSpec.resources': 'The minimum size of the volume.',
  overhead: 'The resources that a Pod with the class uses in addition to those of its containers.',
  scheduling: 'The nodes that support the class, and the taints that Pods with the class tolerate.',

  // Fields of containers
  livenessProbe: 'A periodic probe of the running container. The container restarts when the probe fails.',
  readinessProbe:
    'A periodic probe of the running container. Services send requests to the Pod only while the probe succeeds.',
  startupProbe:
    'The probe that shows whether the container has started. The other probes begin after it has succeeded. The container restarts when the probe fails.',
  lifecycle: 'Actions after the container has started and before it is stopped.',
  postStart: 'An action right after the container has been created. If it fails, the container is stopped.',
  preStop: 'An action before the container is stopped, within the grace period of the Pod.',
  'LifecycleHandler.exec': 'A command in the container.',
  exec: 'A command in the container. Exit code 0 is a success.',
  httpGet: 'An HTTP GET request to the container.',
  tcpSocket: 'A TCP connection to the container.',
  grpc: 'A request of the gRPC health checking protocol to the container.',
  sleep: 'A pause of some seconds.',
  capabilities: 'Linux capabilities that the container gets or loses.',
  seLinuxOptions: 'The SELinux labels of the containers.',
  windowsOptions: 'Settings for containers on Windows.',
  seccompProfile: 'The seccomp profile of the containers.',
  appArmorProfile: 'The AppArmor profile of the containers.',
  state: 'The current state of the container.',
  lastState: 'The state of the container before its last restart.',
  user: 'The user and groups of the first process of the container.',
  linux: 'The user and groups in a container on Linux.',
  waiting: 'Set while the container waits to start.',
  running: 'Set while the container runs.',
  terminated: 'Set when the container has ended.',

  // Fields of environment variables, and of files from objects
  valueFrom: 'The source of the value. Not allowed if value is not empty.',
  configMapRef: 'The ConfigMap whose entries become environment variables.',
  'EnvFromSource.secretRef': 'The Secret whose entries become environment variables.',
  configMapKeyRef: 'A key of a ConfigMap.',
  secretKeyRef: 'A key of a Secret in the Namespace of the Pod.',
  resourceFieldRef: 'A request or limit of a container.',

  // Fields of volumes
  secret: 'The keys of a Secret as files.',
  configMap: 'The keys of a ConfigMap as files.',
  'NodeConfigSource.configMap': 'A ConfigMap with a configuration of the kubelet.',
  downwardAPI: 'Information about the Pod as files.',
  projected: 'Several sources as files in one folder.',
  serviceAccountToken: 'A token of the ServiceAccount as a file.',
  clusterTrustBundle: 'The certificates of ClusterTrustBundles as a file.',
  emptyDir: 'An empty folder that is deleted with the Pod.',
  hostPath: 'A file or folder of the node.',
  gitRepo: 'A git repository. Deprecated: clone the repository in an init container instead.',
  image: 'The files of an image.',
  local: 'A disk or folder of one node.',
  persistentVolumeClaim: 'The volume of a PersistentVolumeClaim in the Namespace of the Pod.',
  ephemeral: 'A volume of a PersistentVolumeClaim that is created for the Pod and deleted with it.',
  csi: 'A volume of a CSI driver.',
  claimRef: 'The PersistentVolumeClaim to which the volume is bound, or is to be bound.',
  'PersistentVolumeClaimSpec.selector': 'Selects PersistentVolumes by their labels.',
  dataSource: 'The object from which the new volume is filled: a VolumeSnapshot or a PersistentVolumeClaim.',
  dataSourceRef: 'The object from which the new volume is filled, of any kind for which there is a driver.',
  modifyVolumeStatus: 'How far the change to another VolumeAttributesClass is.',
  secretRef: 'The Secret with the credentials for the storage system.',
  controllerPublishSecretRef: 'The Secret that the CSI driver gets when a volume is attached to a node or detached.',
  nodeStageSecretRef: 'The Secret that the CSI driver gets when a node prepares a volume for its Pods.',
  nodePublishSecretRef: 'The Secret that the CSI driver gets when a node mounts a volume for a Pod.',
  controllerExpandSecretRef: 'The Secret that the CSI driver gets when a volume is enlarged.',
  nodeExpandSecretRef: 'The Secret that the CSI driver gets when a node enlarges the file system of a volume.',

  // Fields of Nodes and Services
  configSource: 'Deprecated: the source of the configuration of the kubelet.',
  config: 'Deprecated: which configuration the kubelet uses.',
  assigned: 'The configuration that the kubelet tries to use.',
  active: 'The configuration that the kubelet uses.',
  lastKnownGood: 'The configuration to which the kubelet returns if the assigned one is invalid.',
  daemonEndpoints: 'The ports of the daemons on the node.',
  kubeletEndpoint: 'The port of the kubelet.',
  nodeInfo: 'The machine, its operating system, and the versions of its software.',
  swap: 'The swap memory of the node.',
  'NodeStatus.features': 'The features that the runtime of the node supports.',
  'NodeRuntimeHandler.features': 'The features that the handler supports.',
  sessionAffinityConfig: 'The settings of the session affinity.',
  clientIP: 'The settings of session affinity by the address of the client.',
  loadBalancer: 'The addresses of the load balancer, if there is one.',
};
