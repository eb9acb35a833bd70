/**
 * The types and fields that lifepod adds to the API of Kubernetes, and the types of the resource metrics API, in the form of facts.json
 * (see facts.ts). Fields that lifepod adds to types of Kubernetes have numbers from 1000, which upstream does not use.
 * Source: the specification of defer containers; metrics.k8s.io/v1beta1 of v1.33.
 */
import type { PackageFacts } from './facts.ts';

const TYPE_META = '... 0 meta.v1.TypeMeta';
const OBJECT_META = 'metadata? 1 meta.v1.ObjectMeta';
const listOf = (kind: string): string[] => [TYPE_META, 'metadata? 1 meta.v1.ListMeta', `items 2 []${kind}`];

export const ownFacts: Readonly<Record<string, PackageFacts>> = {
  'core.v1': {
    path: 'io.k8s.api.core.v1',
    types: {
      PodSpec: [
        'deferContainers? 1000 []DeferContainer list=map keys=name patch=merge merge=name',
        '... 1001 DeferSettings',
      ],
      PodStatus: ['deferContainerStatuses? 1000 []ContainerStatus list=atomic', 'termination? 1001 *PodTermination'],
      DeferContainer: [
        '... 1 Container',
        'lifecycle? 0 *Lifecycle unlisted',
        'readinessProbe? 0 *Probe unlisted',
        'startupProbe? 0 *Probe unlisted',
        'trigger? 2 string',
        'imageFrom? 3 string',
        // The list is atomic, because neither of two writers would intend the union of their reasons.
        'onReasons? 4 []string list=atomic',
        'when? 5 string',
        'failurePolicy? 6 string',
        'timeoutSeconds? 7 *int32',
      ],
      // The fields of a Pod's spec that configure its defer containers, which are also the fields of the annotation defer-settings.
      DeferSettings: [
        'postExitGracePeriodSeconds? 1 *int32',
        'preStopPolicy? 2 string',
        'deferContainerGracePeriodExtension? 3 *bool',
        'deferContainerGracePeriodExtensionInterval? 4 *int32',
        'deferContainerGracePeriodExtensionCount? 5 *int32',
        'prePullDeferImages? 6 *bool',
      ],
      PodTermination: [
        'reason 1 string',
        'requested? 2 bool',
        'startedAt 3 meta.v1.MicroTime',
        'deadline 4 meta.v1.MicroTime',
        'preExitDeadline? 5 *meta.v1.MicroTime',
        'extendedSeconds? 6 *double',
        'extendedStage? 7 string',
        'outageSeconds? 8 *double',
        'outagesCountedUntil? 9 *meta.v1.MicroTime',
        'deletionGracePeriodSeconds? 10 *int32',
        'nodeGracePeriodSeconds? 11 *int32',
        'turn? 12 *DeferTurn',
        'skip? 13 []string list=set patch=merge',
        'containers? 14 []TerminatedContainer list=map keys=name patch=merge merge=name',
      ],
      DeferTurn: ['entry 1 string', 'since 2 meta.v1.MicroTime'],
      TerminatedContainer: [
        'name 1 string',
        'kind 2 string',
        'exitCode 3 int32',
        'reason? 4 string',
        'signal? 5 *int32',
        'finishedAt? 6 *meta.v1.Time',
        'restartCount 7 int32',
      ],
    },
  },
  'lifepod.v1': {
    path: 'io.lifepod.v1',
    group: 'lifepod.io',
    version: 'v1',
    kinds: 'DeferControl PodRecord PodRecordList',
    types: {
      DeferControl: [TYPE_META, OBJECT_META, 'skip 2 string'],
      PodRecord: [
        TYPE_META,
        OBJECT_META,
        'podName 2 string',
        'podUID 3 string',
        'transitions 4 []PodTransition list=atomic',
        'nodeName? 5 string',
      ],
      PodRecordList: listOf('PodRecord'),
      PodTransition: [
        'key 1 string',
        'at 2 meta.v1.MicroTime',
        'type 3 string',
        'container? 4 string',
        'containerKind? 5 string',
        'attempt? 6 *int32',
        'exitCode? 7 *int32',
        'reason? 8 string',
        'message? 9 string',
        'deadline? 10 *meta.v1.MicroTime',
      ],
    },
  },
  'metrics.v1beta1': {
    path: 'io.k8s.metrics.pkg.apis.metrics.v1beta1',
    group: 'metrics.k8s.io',
    version: 'v1beta1',
    kinds: 'NodeMetrics NodeMetricsList PodMetrics PodMetricsList',
    types: {
      NodeMetrics: [
        TYPE_META,
        OBJECT_META,
        'timestamp 2 meta.v1.Time',
        'window 3 meta.v1.Duration',
        'usage 4 {}resource.Quantity',
      ],
      NodeMetricsList: listOf('NodeMetrics'),
      PodMetrics: [
        TYPE_META,
        OBJECT_META,
        'timestamp 2 meta.v1.Time',
        'window 3 meta.v1.Duration',
        'containers 4 []ContainerMetrics list=atomic',
      ],
      PodMetricsList: listOf('PodMetrics'),
      ContainerMetrics: ['name 1 string', 'usage 2 {}resource.Quantity'],
    },
  },
};
