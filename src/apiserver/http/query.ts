/**
 * Parses the options of a request from its query and its DeleteOptions. Like upstream, rejects invalid values and ignores unknown
 * parameters.
 * Source: v1.33 meta/v1 ListOptions, CreateOptions, UpdateOptions, PatchOptions, DeleteOptions and their validation.
 */

import { type FieldError, forbidden, invalid, notSupported, required } from '../../machinery/field-error.ts';
import { parseFieldSelector } from '../../machinery/field-selector.ts';
import type { PatchType } from '../../machinery/patch/patch.ts';
import { badRequest, invalidObject } from '../../machinery/status.ts';
import type { DeleteOptions, ListOptions, WatchOptions, WriteOptions } from '../../ports/backend.ts';
import { propagationPolicyOf } from '../registry/propagation.ts';

const FIELD_MANAGER_MAX_LENGTH = 128;
const PROPAGATION_POLICIES = ['Background', 'Foreground', 'Orphan', 'nil'];
const FIELD_VALIDATIONS = ['Ignore', 'Strict', 'Warn'] as const;

function text(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name);
  return value === null || value === '' ? undefined : value;
}

/** Returns undefined if the parameter is absent or empty. Throws 400 BadRequest if the value is not a safe integer. */
export function integer(query: URLSearchParams, name: string): number | undefined {
  const value = text(query, name);
  if (value === undefined) return undefined;
  if (!/^[+-]?\d+$/.test(value)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
  const parsed = Number(value);
  if (!Number.isSafeInteger(parsed)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: value out of range`);
  }
  return parsed;
}

/** Returns undefined if the parameter is absent. Source: apimachinery, Convert_Slice_string_To_bool. */
export function flag(query: URLSearchParams, name: string): boolean | undefined {
  const value = query.get(name);
  return value === null ? undefined : value.toLowerCase() !== 'false' && value !== '0';
}

const refuse = (kind: string, errors: FieldError[]): void => {
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind }, '', errors);
};

function resourceVersionMatch(query: URLSearchParams, watch: boolean): FieldError[] {
  const field = 'resourceVersionMatch';
  const match = text(query, field);
  const initial = flag(query, 'sendInitialEvents');
  const errors: FieldError[] = [];
  if (initial !== undefined) {
    if (!watch) errors.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
    else if (match !== 'NotOlderThan') {
      errors.push(
        match === undefined
          ? forbidden(field, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
          : notSupported(field, match, ['NotOlderThan']),
      );
    }
    return errors;
  }
  if (match === undefined) return errors;
  const version = text(query, 'resourceVersion');
  if (watch) {
    errors.push(forbidden(field, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'));
    return errors;
  }
  if (version === undefined) {
    errors.push(forbidden(field, 'resourceVersionMatch is forbidden unless resourceVersion is provided'));
  }
  if (text(query, 'continue') !== undefined) {
    errors.push(forbidden(field, 'resourceVersionMatch is forbidden when continue is provided'));
  }
  if (match !== 'Exact' && match !== 'NotOlderThan') {
    errors.push(notSupported(field, match, ['Exact', 'NotOlderThan', '']));
  } else if (match === 'Exact' && version === '0') {
    errors.push(forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  return errors;
}

export function listOptions(query: URLSearchParams, namespace: string | undefined): ListOptions {
  refuse('ListOptions', resourceVersionMatch(query, false));
  const limit = integer(query, 'limit');
  integer(query, 'timeoutSeconds');
  return {
    ...selection(query, namespace),
    limit: limit === undefined || limit <= 0 ? undefined : limit,
    continue: text(query, 'continue'),
    resourceVersion: text(query, 'resourceVersion'),
    resourceVersionMatch: text(query, 'resourceVersionMatch') as ListOptions['resourceVersionMatch'],
  };
}

/**
 * `name`: the name in the path; undefined if the path has no name. Throws 422 Invalid if resourceVersionMatch and sendInitialEvents do not
 * fit together, and 400 BadRequest if a field selector does not require the name in the path. Source of the last rule and its message:
 * ListResource in pkg/endpoints/handlers of k8s.io/apiserver.
 */
export function watchOptions(query: URLSearchParams, namespace: string | undefined, name?: string): WatchOptions {
  refuse('ListOptions', resourceVersionMatch(query, true));
  const timeoutSeconds = integer(query, 'timeoutSeconds');
  const selected = selection(query, namespace);
  if (name !== undefined && !selectsOnly(name, selected.fieldSelector)) {
    throw badRequest("fieldSelector metadata.name doesn't match requested name");
  }
  return {
    ...selected,
    ...(name !== undefined && { fieldSelector: selected.fieldSelector ?? `metadata.name=${escapeValue(name)}` }),
    resourceVersion: text(query, 'resourceVersion'),
    allowWatchBookmarks: flag(query, 'allowWatchBookmarks'),
    sendInitialEvents: flag(query, 'sendInitialEvents'),
    resourceVersionMatch: text(query, 'resourceVersionMatch') as WatchOptions['resourceVersionMatch'],
    timeoutSeconds: timeoutSeconds === undefined || timeoutSeconds <= 0 ? undefined : timeoutSeconds,
  };
}

const escapeValue = (value: string): string => value.replace(/[\\,=]/g, '\\$&');

const selectsOnly = (name: string, fieldSelector: string | undefined): boolean =>
  fieldSelector === undefined ||
  parseFieldSelector(fieldSelector).some(
    ({ field, op, value }) => field === 'metadata.name' && op === '=' && value === name,
  );

const selection = (query: URLSearchParams, namespace: string | undefined): ListOptions => ({
  namespace,
  labelSelector: text(query, 'labelSelector'),
  fieldSelector: text(query, 'fieldSelector'),
});

function dryRunErrors(values: readonly unknown[]): FieldError[] {
  const unknown = values.filter((value) => value !== 'All');
  return unknown.length === 0 ? [] : [notSupported('dryRun', unknown, ['All'])];
}

/** As upstream, the default manager is the beginning of the User-Agent. */
const managerOf = (userAgent: string | undefined): string | undefined => {
  const name = (userAgent ?? '').split('/', 1)[0]?.slice(0, FIELD_MANAGER_MAX_LENGTH);
  return name === '' ? undefined : name;
};

export function writeOptions(
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  query: URLSearchParams,
  userAgent: string | undefined,
  patchType?: PatchType,
): WriteOptions {
  const manager = text(query, 'fieldManager');
  const validation = text(query, 'fieldValidation');
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  const errors = dryRunErrors(dryRun);
  if (manager !== undefined && Buffer.byteLength(manager) > FIELD_MANAGER_MAX_LENGTH) {
    errors.push({
      type: 'FieldValueTooLong',
      field: 'fieldManager',
      body: `Too long: may not be more than ${FIELD_MANAGER_MAX_LENGTH} bytes`,
    });
  }
  if (manager === undefined && patchType === 'application/apply-patch+yaml') {
    errors.push(required('fieldManager', 'is required for apply patch'));
  }
  const force = flag(query, 'force');
  if (force !== undefined && kind === 'PatchOptions' && patchType !== 'application/apply-patch+yaml') {
    errors.push(forbidden('force', 'may not be specified for non-apply patch'));
  }
  if (validation !== undefined && !FIELD_VALIDATIONS.includes(validation as 'Warn')) {
    errors.push(notSupported('fieldValidation', validation, FIELD_VALIDATIONS));
  }
  refuse(kind, errors);
  return {
    dryRun: dryRun.length > 0,
    fieldManager: manager ?? managerOf(userAgent),
    force: kind === 'PatchOptions' ? force : undefined,
    fieldValidation: validation as WriteOptions['fieldValidation'],
  };
}

/**
 * `body`: the decoded DeleteOptions; undefined if the options are in the query. Throws 400 BadRequest or 422 Invalid if an option is not
 * valid.
 */
export function deleteOptions(query: URLSearchParams, body: Record<string, unknown> | undefined): DeleteOptions {
  const given = body ?? {
    gracePeriodSeconds: integer(query, 'gracePeriodSeconds'),
    propagationPolicy: text(query, 'propagationPolicy'),
    orphanDependents: flag(query, 'orphanDependents'),
    dryRun: query.getAll('dryRun').filter((value) => value !== ''),
  };
  const { gracePeriodSeconds, propagationPolicy, orphanDependents } = given;
  if (gracePeriodSeconds !== undefined && gracePeriodSeconds !== null && !Number.isSafeInteger(gracePeriodSeconds)) {
    throw badRequest(
      'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: gracePeriodSeconds is not an integer',
    );
  }
  const dryRun = Array.isArray(given.dryRun) ? given.dryRun : [];
  const errors = dryRunErrors(dryRun);
  if (propagationPolicy !== undefined && propagationPolicy !== null) {
    if (orphanDependents !== undefined && orphanDependents !== null) {
      errors.push(
        invalid('propagationPolicy', propagationPolicy, 'orphanDependents and deletionPropagation cannot be both set'),
      );
    }
    if (!PROPAGATION_POLICIES.slice(0, 3).includes(propagationPolicy as string)) {
      errors.push(notSupported('propagationPolicy', propagationPolicy, PROPAGATION_POLICIES));
    }
  }
  refuse('DeleteOptions', errors);
  return {
    dryRun: dryRun.length > 0,
    gracePeriodSeconds: typeof gracePeriodSeconds === 'number' ? gracePeriodSeconds : undefined,
    propagationPolicy: propagationPolicyOf({ propagationPolicy, orphanDependents }),
    preconditions: preconditionsOf(given),
  };
}

function preconditionsOf(given: Record<string, unknown>): DeleteOptions['preconditions'] {
  const preconditions = given['preconditions'];
  if (typeof preconditions !== 'object' || preconditions === null) return undefined;
  const { uid, resourceVersion } = preconditions as Record<string, unknown>;
  return {
    uid: typeof uid === 'string' ? uid : undefined,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : undefined,
  };
}
