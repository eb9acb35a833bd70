/**
 * Source: audit.k8s.io/v1 Policy of v1.33 (fields, validation and wording). Unlike upstream, unknown fields and other versions of the API
 * are errors, as upstream intends for a later version.
 */
import { addTypes } from '../../api/facts/facts.ts';
import { decode, unknownFieldText } from '../../api/schema.ts';
import { type FieldError, invalid, listErrors, notSupported, required } from '../../machinery/field-error.ts';
import { dns1123SubdomainErrors } from '../../machinery/names.ts';

export const LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;
/** How much of a request is recorded. Each level includes the previous one. */
export type Level = (typeof LEVELS)[number];

export const STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const;
export type Stage = (typeof STAGES)[number];

export interface GroupResources {
  /** Absent for the core group. */
  group?: string;
  resources?: string[];
  resourceNames?: string[];
}

/** A rule applies to the requests that match all its lists. An absent or empty list matches every request. */
export interface PolicyRule {
  level: Level;
  users?: string[];
  userGroups?: string[];
  verbs?: string[];
  resources?: GroupResources[];
  namespaces?: string[];
  nonResourceURLs?: string[];
  omitStages?: Stage[];
  omitManagedFields?: boolean;
}

export interface Policy {
  rules: PolicyRule[];
  omitStages?: Stage[];
  omitManagedFields?: boolean;
}

const GROUP_VERSION = 'audit.k8s.io/v1';
const PATH = 'io.k8s.apiserver.pkg.apis.audit.v1';
/** The types of a Policy, in the form of src/api/facts/facts.json (see field-line.ts there). */
const TYPES = {
  Policy: [
    '... 0 meta.v1.TypeMeta',
    'metadata? 1 meta.v1.ObjectMeta',
    'rules 2 []PolicyRule',
    'omitStages? 3 []string',
    'omitManagedFields? 4 bool',
  ],
  PolicyRule: [
    'level 1 string',
    'users? 2 []string',
    'userGroups? 3 []string',
    'verbs? 4 []string',
    'resources? 5 []GroupResources',
    'namespaces? 6 []string',
    'nonResourceURLs? 7 []string',
    'omitStages? 8 []string',
    'omitManagedFields? 9 *bool',
  ],
  GroupResources: ['group? 1 string', 'resources? 2 []string', 'resourceNames? 3 []string'],
};

/** Throws an Error that says what is wrong, with the paths of fields. */
export function parsePolicy(document: unknown): Policy {
  const { apiVersion, kind } = typeMetaOf(document);
  if (apiVersion !== GROUP_VERSION || kind !== 'Policy') {
    throw new Error(
      `unknown group version field ${JSON.stringify(apiVersion)}, kind ${JSON.stringify(kind)} in policy: it must have apiVersion ${GROUP_VERSION} and kind Policy`,
    );
  }
  const remove = addTypes(PATH, TYPES);
  try {
    const { value, unknownFields, typeErrors } = decode(`${PATH}.Policy`, document);
    if (typeErrors[0] !== undefined) throw new Error(`failed decoding: ${typeErrors[0]}`);
    if (unknownFields.length > 0)
      throw new Error(`strict decoding error: ${unknownFields.map(unknownFieldText).join(', ')}`);
    const policy = value as unknown as Policy;
    const errors = policyErrors(policy);
    if (errors.length > 0) throw new Error(listErrors(errors).text);
    if (policy.rules.length === 0) throw new Error('loaded illegal policy with 0 rules');
    return policy;
  } finally {
    remove();
  }
}

function typeMetaOf(document: unknown): { apiVersion: unknown; kind: unknown } {
  const { apiVersion = '', kind = '' } = (document ?? {}) as { apiVersion?: unknown; kind?: unknown };
  return { apiVersion, kind };
}

const policyErrors = ({ omitStages, rules }: Policy): FieldError[] => [
  ...stageErrors(omitStages, 'omitStages'),
  ...rules.flatMap((rule, index) => ruleErrors(rule, `rules[${index}]`)),
];

function ruleErrors(rule: PolicyRule, field: string): FieldError[] {
  const { nonResourceURLs = [], resources = [], namespaces = [] } = rule;
  const errors = [
    ...levelErrors(rule.level, `${field}.level`),
    ...nonResourceURLs.flatMap((url, index) => urlErrors(url, `${field}.nonResourceURLs[${index}]`)),
    ...resources.flatMap((each) => resourceErrors(each, `${field}.resources`)),
    ...stageErrors(rule.omitStages, `${field}.omitStages`),
  ];
  if (nonResourceURLs.length > 0 && resources.length + namespaces.length > 0) {
    const text = 'rules cannot apply to both regular resources and non-resource URLs';
    errors.push(invalid(`${field}.nonResourceURLs`, nonResourceURLs, text));
  }
  return errors;
}

function levelErrors(level: string, field: string): FieldError[] {
  if (level === '') return [required(field)];
  return (LEVELS as readonly string[]).includes(level) ? [] : [notSupported(field, level, LEVELS)];
}

function urlErrors(url: string, field: string): FieldError[] {
  if (url === '*') return [];
  const errors: FieldError[] = [];
  if (!url.startsWith('/')) errors.push(invalid(field, url, "non-resource URL rules must begin with a '/' character"));
  if (url.slice(0, -1).includes('*'))
    errors.push(invalid(field, url, "non-resource URL wildcards '*' must be the final character of the rule"));
  return errors;
}

/** As upstream, the paths in the errors do not contain the index of the item. */
function resourceErrors(
  { group = '', resources = [], resourceNames = [] }: GroupResources,
  field: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const problems = group === '' ? [] : dns1123SubdomainErrors(group);
  if (problems.length > 0) errors.push(invalid(`${field}.group`, group, problems.join(',')));
  if (resourceNames.length > 0 && resources.length === 0)
    errors.push(invalid(`${field}.resourceNames`, resourceNames, 'using resourceNames requires at least one resource'));
  return errors;
}

const stageErrors = (stages: readonly string[] = [], field: string): FieldError[] =>
  stages.flatMap((stage, index) =>
    (STAGES as readonly string[]).includes(stage)
      ? []
      : [invalid(`${field}[${index}]`, stage, `allowed stages are ${STAGES.join(',')}`)],
  );
