/** Source: the plugin ServiceAccount of v1.33 (behavior and wording). */
import { admitServiceAccount, serviceAccountNameOf } from '../../api/core/v1/pod/admission.ts';
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { forbidden } from '../../machinery/status.ts';
import { randomSuffix } from '../registry/random-names.ts';
import { createAccountWaits } from './await-service-account.ts';
import type { PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

export const serviceAccount: PluginFactory = (services) => {
  const accounts = createAccountWaits(services);
  return {
    name: 'ServiceAccount',
    handles: on(PODS, 'CREATE'),
    admit({ object, groupResource, namespace, context }) {
      const pod = object as Pod;
      if (isMirrorPod(pod)) return undefined;
      const name = serviceAccountNameOf(pod);
      const suffix = (): string => randomSuffix(services.randomBytes);
      const known = accounts.find(namespace, name);
      if (known !== undefined) return admitServiceAccount(pod, known, suffix());
      return accounts.wait(namespace, name, context.signal).then((account) => {
        if (account !== undefined) return admitServiceAccount(pod, account, suffix());
        const cause = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`;
        throw forbidden(groupResource, pod.metadata.name || pod.metadata.generateName || '', cause);
      });
    },
  };
};
