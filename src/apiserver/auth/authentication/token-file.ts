/**
 * Authenticates users by the tokens of `--token-auth-file`. The file is read once.
 * Source: k8s.io/apiserver/pkg/authentication/token/tokenfile of v1.33 (format and wording).
 */
import { createHash } from 'node:crypto';
import { readProblem } from '../../../machinery/read-problem.ts';
import { UserError } from '../../../platform/files.ts';
import { readTextFile } from '../../../platform/folders/text-file.ts';
import type { UserInfo } from '../../../ports/request.ts';

export type TokenFile = (token: string) => UserInfo | undefined;

/**
 * Reads a CSV file with the columns token, user name, user UID and, optionally, groups with commas between them in one quoted value. Throws
 * a UserError, whose message contains no token, if the file cannot be read or is malformed.
 */
export function readTokenFile(path: string): TokenFile {
  const users = new Map<string, UserInfo>();
  let text: string;
  try {
    text = readTextFile(path);
  } catch (error) {
    throw new UserError(
      `--token-auth-file ${path} ${readProblem(error)}: give a CSV file with a token, a user name and a user UID per line`,
    );
  }
  for (const { line, fields } of records(text, path)) {
    const [token = '', name = '', uid = '', groups = ''] = fields;
    if (fields.length < 3) {
      throw new UserError(
        `--token-auth-file ${path}, line ${line}: a line must have at least 3 columns (token, user name, user uid), found ${fields.length}`,
      );
    }
    if (token !== '') users.set(hashOf(token), { name, uid, groups: groups === '' ? [] : groups.split(',') });
  }
  return (token) => users.get(hashOf(token));
}

/** Tokens are looked up by hash, so that the time of a look-up reveals nothing about a token. */
const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64');

/** A field and the comma or line break after it. Quotes inside a quoted field are doubled. */
const FIELD = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;

/** Yields each record of the CSV text, with the number of its line. Skips empty lines. Format: RFC 4180. */
function* records(text: string, path: string): Generator<{ line: number; fields: string[] }> {
  let line = 1;
  let fields: string[] = [];
  FIELD.lastIndex = 0;
  for (let at = 0; at < text.length; ) {
    FIELD.lastIndex = at;
    const match = FIELD.exec(text);
    if (match === null) throw new UserError(`--token-auth-file ${path}, line ${line}: the quotes do not match`);
    const [whole, quoted, plain = '', end = ''] = match;
    const field = quoted === undefined ? plain.trimStart() : quoted.replaceAll('""', '"');
    at += whole.length;
    fields.push(field);
    const isLast = end !== ',' || at >= text.length;
    if (!isLast) continue;
    if (fields.length > 1 || fields[0] !== '') yield { line, fields };
    fields = [];
    line += whole.split('\n').length - 1;
  }
}
