/** Source: the plugin RuntimeClass of v1.33 (behavior and wording). */
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import { admitRuntimeClass } from '../../api/core/v1/pod/runtime-class.ts';
import type { Pod, RuntimeClass } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import type { PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

const PREFIX = resourcePrefix('node.k8s.io', 'runtimeclasses');

export const runtimeClass: PluginFactory = ({ cache }) => ({
  name: 'RuntimeClass',
  handles: on(PODS, 'CREATE'),
  admit({ object }) {
    const pod = object as Pod;
    if (isMirrorPod(pod)) return;
    const key = objectKey(PREFIX, undefined, pod.spec?.runtimeClassName ?? '');
    admitRuntimeClass(pod, cache.get(key) as RuntimeClass | undefined);
  },
});
