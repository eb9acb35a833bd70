import { describe, expect, test } from 'vitest';
import { parsePolicy } from './policy.ts';
import { policyRules } from './policy-rules.ts';

const policy = (...rules: object[]) => ({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules });

test('a policy is read with all its fields', () => {
  const document = {
    ...policy({
      level: 'Request',
      users: ['u'],
      userGroups: ['g'],
      verbs: ['get'],
      resources: [{ group: 'apps', resources: ['deployments/scale'], resourceNames: ['d'] }],
      namespaces: ['n'],
      omitStages: ['RequestReceived'],
      omitManagedFields: true,
    }),
    metadata: { name: 'p' },
    omitStages: ['Panic'],
    omitManagedFields: false,
  };
  expect(parsePolicy(document)).toMatchObject(document);
});

test.each<[string, unknown, string]>([
  ['a text', 'x', 'unknown group version field "", kind "" in policy'],
  ['nothing', null, 'unknown group version field "", kind "" in policy'],
  [
    'an older version',
    { ...policy(), apiVersion: 'audit.k8s.io/v1beta1' },
    'unknown group version field "audit.k8s.io/v1beta1"',
  ],
  ['another kind', { ...policy(), kind: 'Event' }, 'kind "Event" in policy: it must have'],
  ['no rules', policy(), 'loaded illegal policy with 0 rules'],
  [
    'a level of the wrong type',
    policy({ level: 1 }),
    'failed decoding: json: cannot unmarshal number into Go struct field PolicyRule.rules.level of type string',
  ],
  [
    'verbs that are a text',
    policy({ level: 'None', verbs: 'get' }),
    'failed decoding: json: cannot unmarshal string into Go struct field PolicyRule.rules.verbs of type []string',
  ],
  [
    'unknown fields',
    { ...policy({ level: 'None', resource: [] }), rule: 1 },
    'strict decoding error: unknown field "rules[0].resource", unknown field "rule"',
  ],
  ['a rule without a level', policy({ users: ['a'] }), 'rules[0].level: Required value'],
  [
    'an unknown level',
    policy({ level: 'None' }, { level: 'metadata' }),
    'rules[1].level: Unsupported value: "metadata": supported values: "None", "Metadata", "Request", "RequestResponse"',
  ],
  [
    'unknown stages',
    { ...policy({ level: 'None', omitStages: ['Panic', 'Panics'] }), omitStages: [''] },
    '[omitStages[0]: Invalid value: "": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic, rules[0].omitStages[1]: Invalid value: "Panics": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic]',
  ],
  [
    'URLs without a slash and with an inner wildcard',
    policy({ level: 'None', nonResourceURLs: ['*', 'healthz', '/a*b*'] }),
    `[rules[0].nonResourceURLs[1]: Invalid value: "healthz": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[2]: Invalid value: "/a*b*": non-resource URL wildcards '*' must be the final character of the rule]`,
  ],
  [
    'resources and URLs in one rule',
    policy({ level: 'None', nonResourceURLs: ['/a'], namespaces: ['n'] }),
    'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs',
  ],
  [
    'a group with a version',
    policy({ level: 'None', resources: [{ group: 'rbac.authorization.k8s.io/v1' }] }),
    'rules[0].resources.group: Invalid value: "rbac.authorization.k8s.io/v1": a lowercase RFC 1123 subdomain must consist of',
  ],
  [
    'names without resources',
    policy({ level: 'None', resources: [{ resourceNames: ['a'] }] }),
    'rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource',
  ],
])('a policy that is or has %s is refused', (_, document, message) => {
  expect(() => parsePolicy(document)).toThrow(message);
});

describe('the rule that applies', () => {
  const user = { name: 'jane', groups: ['team', 'system:authenticated'] };
  const of = (text: string, more: object = {}) => {
    const [verb = '', what = '', name, namespace] = text.split(' ');
    if (what.startsWith('/')) return { user, verb, path: what, ...more };
    const [resource = '', subresource] = what.split('/');
    return { user, verb, group: '', resource, subresource, name, namespace, ...more };
  };
  const matches = (rule: object, request: ReturnType<typeof of>): boolean =>
    policyRules(parsePolicy(policy({ level: 'Metadata', ...rule })))(request).level === 'Metadata';
  const resources = (...names: string[]) => ({ resources: [{ resources: names }] });

  test.each<[object, string, boolean]>([
    [{}, 'get pods a n', true],
    [{}, 'get /healthz', true],
    [{ users: ['joe', 'jane'] }, 'get pods a n', true],
    [{ users: ['joe'] }, 'get pods a n', false],
    [{ userGroups: ['others', 'team'] }, 'get pods a n', true],
    [{ userGroups: ['others'] }, 'get pods a n', false],
    [{ verbs: ['get', 'list'] }, 'get pods a n', true],
    [{ verbs: ['get', 'list'] }, 'delete pods a n', false],
    [{ namespaces: ['n'] }, 'get pods a n', true],
    [{ namespaces: ['m'] }, 'get pods a n', false],
    [{ namespaces: [''] }, 'get nodes a', true],
    [{ namespaces: ['n'] }, 'get /n', false],
    [resources('pods'), 'get pods a n', true],
    [resources('pods'), 'get pods/log a n', false],
    [resources('pods/log'), 'get pods/log a n', true],
    [resources('pods/*'), 'get pods/log a n', true],
    [resources('pods/*'), 'get pods a n', true],
    [resources('*'), 'get pods/log a n', true],
    [resources('*/log'), 'get pods/log a n', true],
    [resources('*/log'), 'get pods a n', false],
    [resources('*'), 'get /healthz', false],
    [{ resources: [{}] }, 'get pods a n', true],
    [{ resources: [{ group: 'apps' }] }, 'get pods a n', false],
    [{ resources: [{ group: 'apps' }, { group: '' }] }, 'get pods a n', true],
    [{ resources: [{ resources: ['pods'], resourceNames: ['a'] }] }, 'get pods a n', true],
    [{ resources: [{ resources: ['pods'], resourceNames: ['a'] }] }, 'get pods b n', false],
    [{ resources: [{ resources: ['pods'], resourceNames: ['a'] }] }, 'list pods', false],
    [{ nonResourceURLs: ['*'] }, 'get /a/b', true],
    [{ nonResourceURLs: ['/a*'] }, 'get /a/b', true],
    [{ nonResourceURLs: ['/a'] }, 'get /a/b', false],
    [{ nonResourceURLs: ['/a/b'] }, 'get /a/b', true],
    [{ nonResourceURLs: ['*'] }, 'get pods a n', false],
  ])('%j for %s: %s', (rule, request, expected) => {
    expect(matches(rule, of(request))).toBe(expected);
  });

  test('no rule for users or groups applies to a request whose authentication has failed', () => {
    const anonymous = of('get pods a n', { user: undefined });
    expect(matches({ users: [''] }, anonymous)).toBe(false);
    expect(matches({ userGroups: ['team'] }, anonymous)).toBe(false);
    expect(matches({}, anonymous)).toBe(true);
  });

  test('the first rule that matches applies, with omitStages of the rule and the policy, and with omitManagedFields of the rule', () => {
    const document = {
      ...policy(
        { level: 'None', verbs: ['watch'] },
        { level: 'Request', verbs: ['get'], omitStages: ['Panic'], omitManagedFields: false },
        { level: 'Metadata', users: ['jane'] },
      ),
      omitStages: ['RequestReceived'],
      omitManagedFields: true,
    };
    const configOf = policyRules(parsePolicy(document));
    expect(configOf(of('watch pods'))).toMatchObject({ level: 'None' });
    expect(configOf(of('get pods a n'))).toEqual({
      level: 'Request',
      omitStages: new Set(['RequestReceived', 'Panic']),
      omitManagedFields: false,
    });
    expect(configOf(of('list pods'))).toMatchObject({ level: 'Metadata', omitManagedFields: true });
    expect(configOf(of('list pods', { user: { name: 'joe', groups: [] } }))).toMatchObject({ level: 'None' });
  });
});
