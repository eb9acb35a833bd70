import { expect, test } from 'vitest';
import { kinds } from '../../src/api/kinds.ts';
import { read, typeScript } from './sources.ts';

const REASONS: Readonly<Record<string, string>> = {
  'src/apiserver/audit/audit.ts': 'a call for a Namespace is also a call in this Namespace',
  'src/apiserver/audit/event.ts': 'the events of the audit log have the name of a kind',
  'src/apiserver/auth/authorization/bootstrap/bootstrap-objects.ts':
    'creates the roles and bindings that every cluster has',
  'src/apiserver/auth/authorization/node/node-graph.ts': 'knows which objects belong to the Pods of a node',
  'src/apiserver/auth/authorization/rbac.ts': 'evaluates roles and bindings',
  'src/apiserver/auth/authorization/subjects.ts': 'a ServiceAccount can be the subject of a binding',
  'src/apiserver/auth/impersonate.ts': 'a right to impersonate is about a user, a group or a ServiceAccount',
  'src/apiserver/auth/request-attributes.ts':
    'a request for a Namespace, or for the path /namespaces/NAME/PLURAL, is a request in this Namespace',
  'src/apiserver/encryption/key-file.ts': 'encrypts Secrets by default',
  'src/apiserver/encryption/resource-names.ts': "has upstream's messages about the names of resources",
  'src/apiserver/registry/bootstrap.ts': 'creates the objects that every cluster has',
  'src/apiserver/registry/dns-service.ts': 'creates the Service of the DNS and its EndpointSlice',
  'src/apiserver/registry/events.ts': 'writes Events',
  'src/apiserver/registry/system-endpoints/kubernetes-endpoints.ts': 'creates the endpoints of the API server',
  'src/apiserver/registry/tokens/token-request.ts': 'issues tokens that are bound to Pods, Nodes and Secrets',
  'src/apiserver/http/routes.ts': 'the path /namespaces/NAME/PLURAL addresses objects in a Namespace',
};

/** Matches string literals that are the name or the plural of a kind. */
const NAMES = new RegExp(`'(?:${kinds.flatMap(({ kind, plural }) => [kind, plural]).join('|')})'`);

test('no file of the API server names a kind, except admission plugins and files with a reason', () => {
  const naming = typeScript.filter(
    (path) =>
      path.startsWith('src/apiserver/') &&
      !path.startsWith('src/apiserver/admission/') &&
      !/(\.test|-fixture|\/testing)\.ts$/.test(path) &&
      NAMES.test(read(path)),
  );
  expect(naming.sort()).toEqual(Object.keys(REASONS).sort());
});
