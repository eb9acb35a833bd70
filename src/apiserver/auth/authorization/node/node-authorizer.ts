/**
 * The Node authorizer: limits nodes to the objects that belong to them and to their Pods. The admission plugin NodeRestriction checks the
 * contents of the objects.
 *
 * For paths, and for resources without an entry in RULES, the rules of upstream's role system:node decide, even if the role with this name
 * in the API has other rules.
 *
 * Source: plugin/pkg/auth/authorizer/node/node_authorizer.go of v1.33 (behavior and wording).
 */
import type { PolicyRule } from '../../../../api/generated/types.ts';
import {
  type Attributes,
  type Authorizer,
  type Decision,
  isPath,
  type ResourceAttributes,
} from '../../../../ports/authorizer.ts';
import { clusterRoleTexts } from '../bootstrap/cluster-roles.ts';
import { ruleOf } from '../bootstrap/rule-text.ts';
import { rulesAllow } from '../rule-index.ts';
import type { NodeRelations } from './node-graph.ts';
import { nodeNameOf } from './node-identity.ts';

/** `synced` resolves once the objects that existed at the start have been read. */
export type SyncedRelations = NodeRelations & { readonly synced: Promise<void> };

const NODE_RULES: readonly PolicyRule[] = (clusterRoleTexts['system:node'] ?? []).map(ruleOf);

/** A denial has a reason that begins with this text if the requested object does not belong to the node (see node-graph.ts). */
export const NO_RELATION = 'no relationship found between node';

const ALLOWED: Decision = { allowed: true, reason: '' };
const denied = (reason: string): Decision => ({ allowed: false, reason });
const NO_OPINION = denied('');

export function createNodeAuthorizer(relations: SyncedRelations): Authorizer {
  return {
    async authorize(attributes) {
      const { user } = attributes;
      const nodeName = nodeNameOf(user);
      if (nodeName === undefined) return NO_OPINION;
      if (nodeName === '') return denied(`unknown node for user ${JSON.stringify(user.name)}`);
      await relations.synced;
      return decide(relations, nodeName, attributes);
    },
    async rulesFor(user) {
      const errors = nodeNameOf(user) === undefined ? [] : ['node authorizer does not support user rule resolution'];
      return { roles: [], errors };
    },
  };
}

type Rule = (asked: Asked) => Decision;

interface Asked extends ResourceAttributes {
  nodeName: string;
  relation(): Decision;
}

function decide(relations: NodeRelations, nodeName: string, attributes: Attributes): Decision {
  const rule = isPath(attributes) ? undefined : RULES[`${attributes.group}/${attributes.resource}`];
  if (isPath(attributes) || rule === undefined) return rulesAllow(NODE_RULES, attributes) ? ALLOWED : NO_OPINION;
  const { resource, namespace = '', name = '' } = attributes;
  const relation = (): Decision => {
    if (name === '') return denied('No Object name found');
    if (relations.relates(nodeName, resource, namespace, name)) return ALLOWED;
    return denied(`${NO_RELATION} '${nodeName}' and this object`);
  };
  return rule({ ...attributes, nodeName, relation });
}

const isOneOf = (verb: string, ...verbs: readonly string[]): boolean => verbs.includes(verb);

/** Whether all objects that the request selects have the value in the field. */
const selects = ({ fieldSelector = [] }: ResourceAttributes, field: string, value: string): boolean =>
  fieldSelector.some((each) => each.field === field && each.op === '=' && each.value === value);

function readOne({ verb, subresource, namespace, relation }: Asked): Decision {
  if (!isOneOf(verb, 'get', 'list', 'watch')) return denied('can only read resources of this type');
  if (subresource) return denied('cannot read subresource');
  if (!namespace) return denied('can only read namespaced object of this type');
  return relation();
}

function getOne({ verb, subresource, relation }: Asked): Decision {
  if (verb !== 'get') return denied('can only get individual resources of this type');
  if (subresource) return denied('cannot get subresource');
  return relation();
}

function claim(asked: Asked): Decision {
  if (asked.subresource !== 'status') return getOne(asked);
  return isOneOf(asked.verb, 'update', 'patch') ? asked.relation() : denied('can only get/update/patch this type');
}

function token({ verb, subresource, name, relation }: Asked): Decision {
  if (verb !== 'create' || !name) return denied('can only create tokens for individual service accounts');
  return subresource === 'token' ? relation() : denied('can only create token subresource of serviceaccount');
}

const OWN_VERBS = ['get', 'create', 'update', 'patch', 'delete'];

function lease({ verb, namespace, name, nodeName }: Asked): Decision {
  if (!OWN_VERBS.includes(verb)) return denied('can only get, create, update, patch, or delete a node lease');
  if (namespace !== 'kube-node-lease')
    return denied('can only access leases in the "kube-node-lease" system namespace');
  // NodeRestriction checks the name of a new Lease.
  if (verb !== 'create' && name !== nodeName)
    return denied('can only access node lease with the same name as the requesting node');
  return ALLOWED;
}

function csiNode({ verb, subresource, name, nodeName }: Asked): Decision {
  if (!OWN_VERBS.includes(verb)) return denied('can only get, create, update, patch, or delete a CSINode');
  if (subresource) return denied('cannot authorize CSINode subresources');
  if (verb !== 'create' && name !== nodeName)
    return denied('can only access CSINode with the same name as the requesting node');
  return ALLOWED;
}

function resourceSlice(asked: Asked): Decision {
  const { verb, subresource, nodeName, relation } = asked;
  if (subresource) return denied('cannot authorize ResourceSlice subresources');
  if (verb === 'create') return ALLOWED;
  if (isOneOf(verb, 'get', 'update', 'patch', 'delete')) return relation();
  if (!isOneOf(verb, 'watch', 'list', 'deletecollection'))
    return denied(
      'only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection',
    );
  return selects(asked, 'nodeName', nodeName)
    ? ALLOWED
    : denied('can only list/watch/deletecollection resourceslices with nodeName field selector');
}

/** A node may write any Node here, but NodeRestriction then allows only its own. */
function node({ verb, subresource, name, nodeName }: Asked): Decision {
  if (subresource === 'status') return isOneOf(verb, 'update', 'patch') ? ALLOWED : NO_OPINION;
  if (subresource) return NO_OPINION;
  if (isOneOf(verb, 'create', 'update', 'patch')) return ALLOWED;
  if (!isOneOf(verb, 'get', 'list', 'watch')) return NO_OPINION;
  // The name decides instead of a relation, so that a node can ask for its Node before the Node exists.
  if (name === nodeName) return ALLOWED;
  return denied(
    name
      ? `node '${nodeName}' cannot read '${name}', only its own Node object`
      : `node '${nodeName}' cannot read all nodes, only its own Node object`,
  );
}

/** NodeRestriction checks the writes that are allowed here. */
function pod(asked: Asked): Decision {
  const { verb, subresource, name, nodeName, relation } = asked;
  if (subresource === 'status') return isOneOf(verb, 'update', 'patch') ? ALLOWED : NO_OPINION;
  if (subresource === 'eviction') return verb === 'create' ? ALLOWED : NO_OPINION;
  if (subresource) return NO_OPINION;
  if (verb === 'get') return getOne(asked);
  if (isOneOf(verb, 'create', 'delete')) return ALLOWED;
  if (!isOneOf(verb, 'list', 'watch')) return NO_OPINION;
  if (selects(asked, 'spec.nodeName', nodeName)) return ALLOWED;
  return name ? relation() : denied('can only list/watch pods with spec.nodeName field selector');
}

/** PodRecord is a kind of lifepod. NodeRestriction limits writes to records of the node's Pods. */
function podRecord(asked: Asked): Decision {
  const { verb, subresource, nodeName } = asked;
  if (subresource) return NO_OPINION;
  if (isOneOf(verb, 'create', 'get', 'update')) return ALLOWED;
  if (!isOneOf(verb, 'list', 'watch')) return NO_OPINION;
  return selects(asked, 'nodeName', nodeName)
    ? ALLOWED
    : denied('can only list/watch podrecords with nodeName field selector');
}

/** The rules by GROUP/RESOURCE, in which GROUP is empty for the core group. */
const RULES: Readonly<Record<string, Rule>> = {
  '/secrets': readOne,
  '/configmaps': readOne,
  '/persistentvolumeclaims': claim,
  '/persistentvolumes': getOne,
  '/serviceaccounts': token,
  '/nodes': node,
  '/pods': pod,
  'resource.k8s.io/resourceclaims': getOne,
  'resource.k8s.io/resourceslices': resourceSlice,
  'storage.k8s.io/volumeattachments': getOne,
  'storage.k8s.io/csinodes': csiNode,
  'coordination.k8s.io/leases': lease,
  'lifepod.io/podrecords': podRecord,
};
