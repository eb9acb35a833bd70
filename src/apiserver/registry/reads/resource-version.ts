import { type FieldError, forbidden, invalid, notSupported } from '../../../machinery/field-error.ts';
import { type ApiError, invalidObject } from '../../../machinery/status.ts';
import type { ListOptions, WatchOptions } from '../../../ports/backend.ts';

const invalidListOptions = (errors: FieldError[]): ApiError =>
  invalidObject({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors);

/**
 * Returns 0 if the resourceVersion is absent or empty. Throws 422 Invalid if the text is not an integer from 0 to Number.MAX_SAFE_INTEGER.
 */
export function parseResourceVersion(text: string | undefined): number {
  if (text === undefined || text === '') return 0;
  const revision = /^\d{1,20}$/.test(text) ? Number(text) : undefined;
  if (revision === undefined || !Number.isSafeInteger(revision)) {
    const detail = `strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`;
    throw invalidListOptions([invalid('resourceVersion', text, detail)]);
  }
  return revision;
}

/**
 * Whether the list must show exactly the state at its resourceVersion, if the resourceVersion is neither absent nor 0.
 * Source: "Resource versions" of the v1.33 API concepts.
 */
export const isExact = ({ resourceVersionMatch: match, limit = 0 }: ListOptions): boolean =>
  match === 'Exact' || (!match && limit > 0);

export const mayReadStore = (options: ListOptions): boolean =>
  options.continue !== undefined || (isExact(options) && parseResourceVersion(options.resourceVersion) !== 0);

const MATCH = 'resourceVersionMatch';
const known: readonly unknown[] = ['Exact', 'NotOlderThan'];

/**
 * Throws 422 Invalid if resourceVersionMatch has an unknown value or does not fit the other options.
 * Source: k8s.io/apimachinery/pkg/apis/meta/internalversion/validation (behavior and wording).
 */
export function checkListOptions(options: ListOptions): void {
  const { resourceVersion, resourceVersionMatch: match } = options;
  if (match === undefined) return;
  const errors: FieldError[] = [];
  if (!resourceVersion) errors.push(forbidden(MATCH, `${MATCH} is forbidden unless resourceVersion is provided`));
  if (options.continue) errors.push(forbidden(MATCH, `${MATCH} is forbidden when continue is provided`));
  if (!known.includes(match)) errors.push(notSupported(MATCH, match, ['Exact', 'NotOlderThan', '']));
  if (match === 'Exact' && resourceVersion === '0') {
    errors.push(forbidden(MATCH, `${MATCH} "exact" is forbidden for resourceVersion "0"`));
  }
  if (errors.length > 0) throw invalidListOptions(errors);
}

/** Throws 422 Invalid if resourceVersionMatch and sendInitialEvents do not fit together. Source: as for checkListOptions(). */
export function checkWatchOptions({ sendInitialEvents, resourceVersionMatch: match }: WatchOptions): void {
  const errors: FieldError[] = [];
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(forbidden(MATCH, `sendInitialEvents requires setting ${MATCH} to NotOlderThan`));
  }
  if (match !== undefined && sendInitialEvents === undefined) {
    errors.push(forbidden(MATCH, `${MATCH} is forbidden for watch unless sendInitialEvents is provided`));
  }
  if (match !== undefined && match !== 'NotOlderThan') errors.push(notSupported(MATCH, match, ['NotOlderThan']));
  if (errors.length > 0) throw invalidListOptions(errors);
}
