/**
 * Lets only nodes create mirror Pods. The node already runs the static Pod of a mirror Pod, so other plugins do not change it.
 * Source: the plugins NodeRestriction and ServiceAccount of v1.33 (behavior and wording).
 */
import { admitMirrorPod, isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

export const nodeRestriction: PluginFactory = () => ({
  name: 'NodeRestriction',
  handles: on(PODS, 'CREATE'),
  admit({ object, context }) {
    const pod = object as Pod;
    if (isMirrorPod(pod)) admitMirrorPod(pod, context.user.groups.includes('system:nodes'));
  },
});
