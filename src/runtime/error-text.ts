/** Shortens the texts of failed calls without loading gRPC, which few commands need. */

/** The words that RuntimeCallError and the gRPC library put in front of the reason of a failed call. */
const PREFIXES = /rpc error: code = \w+ desc = |No connection established\. Last error: (?:Error: )?/g;

/** Returns `down: connect ENOENT /c.sock` for `down: rpc error: … Last error: Error: connect ENOENT /c.sock`. */
export const shortCallError = (text: string): string => text.replace(PREFIXES, '');
