/**
 * The limit of what the answer to a failed request says.
 *
 * Messages and causes show what a client sent, and the path of a field repeats all keys above the field: their text can be a
 * thousand times as long as the request, longer than any text that JavaScript can have.
 */
import { MAX_LISTED_ERRORS } from './field-error.ts';
import type { Status, StatusCause, StatusDetails } from './meta.ts';

/** Of the message of an error, and of its causes together. */
export const MAX_ERROR_CHARS = 1024 * 1024;

/** The beginning of a text that is too long for an error. */
export const cutForError = (text: string): string =>
  text.length > MAX_ERROR_CHARS ? `${text.slice(0, MAX_ERROR_CHARS)}...` : text;

/** The first of the errors: as many as fit into one answer, and at least one. Does not ask for further ones. */
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

const cutCause = ({ message, field, ...rest }: StatusCause): StatusCause => ({
  ...rest,
  ...(message === undefined ? {} : { message: cutForError(message) }),
  ...(field === undefined ? {} : { field: cutForError(field) }),
});

function boundedDetails(details: StatusDetails): StatusDetails {
  const { name, causes } = details;
  return {
    ...details,
    ...(name === undefined ? {} : { name: cutForError(name) }),
    ...(causes === undefined ? {} : { causes: listed(causes, causeChars).map(cutCause) }),
  };
}

/** The status with texts that are short enough for an answer. */
export function boundedStatus(status: Status): Status {
  const { message, details } = status;
  return {
    ...status,
    ...(message === undefined ? {} : { message: cutForError(message) }),
    ...(details === undefined ? {} : { details: boundedDetails(details) }),
  };
}
