/** Source: the plugin Priority of v1.33, and pkg/registry/scheduling/priorityclass (behavior and wording). */
import { admitPriority, defaultPriorityClass, systemPriorities } from '../../api/core/v1/pod/admission.ts';
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PriorityClass } from '../../api/generated/types.ts';
import { PODS, PRIORITY_CLASSES } from '../../api/resources.ts';
import { forbidden } from '../../machinery/status.ts';
import { resourcePrefix } from '../cache/keys.ts';
import type { AdmissionRequest, PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

const PREFIX = resourcePrefix('scheduling.k8s.io', 'priorityclasses');
const isNewPod = on(PODS, 'CREATE');
const isClass = on(PRIORITY_CLASSES, 'CREATE', 'UPDATE', 'DELETE');

export const priority: PluginFactory = ({ cache }) => {
  const classes = (): PriorityClass[] => cache.list(PREFIX) as PriorityClass[];
  return {
    name: 'Priority',
    handles: (target) => isNewPod(target) || isClass(target),
    admit(request) {
      const pod = request.object as Pod;
      if (isNewPod(request) && !isMirrorPod(pod)) admitPriority(pod, classes());
    },
    validate(request) {
      if (!isClass(request)) return;
      if (request.operation === 'DELETE') refuseSystemClass(request);
      else refuseSecondDefault(request, classes());
    },
  };
};

function refuseSystemClass({ groupResource, name }: AdmissionRequest): void {
  if (systemPriorities[name] === undefined) return;
  throw forbidden(groupResource, name, 'this is a system priority class and cannot be deleted');
}

function refuseSecondDefault({ groupResource, object }: AdmissionRequest, classes: readonly PriorityClass[]): void {
  const { globalDefault, metadata } = object as PriorityClass;
  if (globalDefault !== true) return;
  const other = defaultPriorityClass(classes.filter((each) => each.metadata.name !== metadata.name))?.metadata.name;
  if (other === undefined) return;
  const cause = `PriorityClass ${other} is already marked as default. Only one default can exist`;
  throw forbidden(groupResource, metadata.name, cause);
}
