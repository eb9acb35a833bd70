/**
 * The common parts of RoleBindings and ClusterRoleBindings.
 * Source: pkg/apis/rbac/v1/defaults.go, pkg/apis/rbac/validation and pkg/printers of v1.33 (behavior and wording).
 */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../machinery/field-error.ts';
import { dns1123SubdomainErrors, pathSegmentErrors } from '../../../machinery/names.ts';
import type { ClusterRoleBinding, RbacV1Subject, RoleBinding, RoleRef } from '../../generated/types.ts';
import { ageColumn, column, nameColumn } from '../../table.ts';
import { RBAC_GROUP } from './role-rules.ts';

export type Binding = RoleBinding | ClusterRoleBinding;

export function defaultBinding({ roleRef, subjects = [] }: Binding): void {
  if (roleRef !== undefined) roleRef.apiGroup ||= RBAC_GROUP;
  for (const subject of subjects)
    if (subject.kind === 'User' || subject.kind === 'Group') subject.apiGroup ||= RBAC_GROUP;
}

const NO_ROLE: RoleRef = { apiGroup: '', kind: '', name: '' };

function validateRoleRef({ apiGroup, kind, name }: RoleRef, kinds: readonly string[]): FieldError[] {
  return allErrors(
    apiGroup === RBAC_GROUP ? [] : [notSupported('roleRef.apiGroup', apiGroup ?? '', [RBAC_GROUP])],
    kinds.includes(kind) ? [] : [notSupported('roleRef.kind', kind ?? '', kinds)],
    name ? pathSegmentErrors(name).map((text) => invalid('roleRef.name', name, text)) : [required('roleRef.name')],
  );
}

const SUBJECT_KINDS = ['ServiceAccount', 'User', 'Group'];

function validateSubject(subject: RbacV1Subject, field: string, namespaced: boolean): FieldError[] {
  const { kind = '', name = '', apiGroup = '', namespace = '' } = subject;
  const errors = name === '' ? [required(`${field}.name`)] : [];
  if (kind === 'ServiceAccount') {
    if (name !== '') errors.push(...dns1123SubdomainErrors(name).map((text) => invalid(`${field}.name`, name, text)));
    if (apiGroup !== '') errors.push(notSupported(`${field}.apiGroup`, apiGroup, ['']));
    if (!namespaced && namespace === '') errors.push(required(`${field}.namespace`));
  } else if (!SUBJECT_KINDS.includes(kind)) {
    errors.push(notSupported(`${field}.kind`, kind, SUBJECT_KINDS));
  } else if (apiGroup !== RBAC_GROUP) {
    errors.push(notSupported(`${field}.apiGroup`, apiGroup, [RBAC_GROUP]));
  }
  return errors;
}

/** Upstream's error shows the reference with the names of the fields in Go. */
const shownRef = ({ apiGroup, kind, name }: RoleRef): object => ({ APIGroup: apiGroup, Kind: kind, Name: name });

const isSameRef = (a: RoleRef, b: RoleRef): boolean =>
  a.apiGroup === b.apiGroup && a.kind === b.kind && a.name === b.name;

/** `kinds`: the kinds of roles to which the binding can refer. */
export function validateBinding(
  { roleRef = NO_ROLE, subjects = [] }: Binding,
  old: Binding | undefined,
  { kinds, namespaced }: { kinds: readonly string[]; namespaced: boolean },
): FieldError[] {
  return allErrors(
    validateRoleRef(roleRef, kinds),
    ...subjects.map((subject, index) => validateSubject(subject, `subjects[${index}]`, namespaced)),
    old === undefined || isSameRef(roleRef, old.roleRef ?? NO_ROLE)
      ? []
      : [invalid('roleRef', shownRef(roleRef), 'cannot change roleRef')],
  );
}

const subjectsCell =
  (kind: string) =>
  ({ subjects = [] }: Binding): string =>
    subjects
      .filter((subject) => subject.kind === kind)
      .map(({ name, namespace }) => (kind === 'ServiceAccount' && namespace ? `${namespace}/${name}` : name))
      .join(', ');

const wide = { wide: true };

export const bindingColumns = [
  nameColumn,
  column<Binding>('Role', 'The role that the binding grants.', ({ roleRef }) => `${roleRef.kind}/${roleRef.name}`),
  ageColumn,
  column('Users', 'The users to which the role is granted.', subjectsCell('User'), wide),
  column('Groups', 'The groups to which the role is granted.', subjectsCell('Group'), wide),
  column('ServiceAccounts', 'The ServiceAccounts to which the role is granted.', subjectsCell('ServiceAccount'), wide),
];
