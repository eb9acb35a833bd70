/**
 * Limits the size of the response to a failed request.
 *
 * Messages and causes quote values that the client sent, and the path of a field contains the keys of all its parents. Without limits,
 * the texts could be a thousand times as long as the request, and longer than the longest possible JavaScript string.
 */
import { defined } from './drop-undefined.ts';
import { MAX_LISTED_ERRORS } from './field-error.ts';
import type { Status, StatusCause, StatusDetails } from './meta.ts';

/**
 * In UTF-16 code units: the maximum length of an error's message, and of its causes together. A single cause may be longer. The "..." after
 * a truncated text is not counted.
 */
export const MAX_ERROR_CHARS = 1024 * 1024;

/** Truncates the text to MAX_ERROR_CHARS and appends "...". */
export const cutForError = (text: string): string =>
  text.length > MAX_ERROR_CHARS ? `${text.slice(0, MAX_ERROR_CHARS)}...` : text;

/**
 * Returns as many of the first errors as fit into one response, at least one. Does not iterate over the remaining errors, because there may
 * be too many to create. `charsOf`: the length of an error's text.
 */
export function listed<T>(errors: Iterable<T>, charsOf: (error: T) => number): T[] {
  const list: T[] = [];
  let chars = 0;
  for (const error of errors) {
    chars += charsOf(error);
    if (list.length === MAX_LISTED_ERRORS || (list.length > 0 && chars > MAX_ERROR_CHARS)) break;
    list.push(error);
  }
  return list;
}

const causeChars = ({ reason = '', message = '', field = '' }: StatusCause): number =>
  reason.length + message.length + field.length;

const cutCause = (cause: StatusCause): StatusCause => {
  const { message, field } = cause;
  return defined({ ...cause, message: message && cutForError(message), field: field && cutForError(field) });
};

function boundedDetails(details: StatusDetails): StatusDetails {
  const { name, causes } = details;
  return defined({
    ...details,
    name: name && cutForError(name),
    causes: causes && listed(causes, causeChars).map(cutCause),
  });
}

/** Truncates long texts and drops excess causes, so that the status fits into a response. */
export function boundedStatus(status: Status): Status {
  const { message, details } = status;
  return defined({
    ...status,
    message: message && cutForError(message),
    details: details && boundedDetails(details),
  });
}
