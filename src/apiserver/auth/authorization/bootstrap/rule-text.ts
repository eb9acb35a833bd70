/**
 * Rules as short texts, so that the bootstrap roles can be read and compared at a glance.
 *
 *   get,list,watch pods,pods/log                          resources of the core group
 *   get,update leases in coordination.k8s.io named a,b    resources of other groups, with names
 *   get /healthz,/api/*                                   paths that belong to no resource
 *
 * `read` stands for get, list and watch; `write` for create, update, patch, delete and deletecollection. `in core,apps` names the core
 * group among others.
 */
import type { PolicyRule } from '../../../../api/generated/types.ts';

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];

const verbsOf = (verb: string): string[] => (verb === 'read' ? READ : verb === 'write' ? WRITE : [verb]);

/** As in upstream's roles, the lists of the rule are in alphabetical order. */
export function ruleOf(text: string): PolicyRule {
  const match = /^(\S+) (\S+?)(?: in (\S+))?(?: named (\S+))?$/.exec(text);
  if (match === null) throw new Error(`not a rule: ${text}`);
  const [, verbText = '', whatText = '', groups = 'core', names] = match;
  const verbs = [...new Set(verbText.split(',').flatMap(verbsOf))].sort();
  const what = whatText.split(',').sort();
  if (whatText.startsWith('/')) return { nonResourceURLs: what, verbs };
  return {
    apiGroups: groups
      .split(',')
      .map((group) => (group === 'core' ? '' : group))
      .sort(),
    ...(names === undefined ? {} : { resourceNames: names.split(',').sort() }),
    resources: what,
    verbs,
  };
}
