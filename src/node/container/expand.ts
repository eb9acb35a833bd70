import { ContainerConfigError } from './container-config-error.ts';

/**
 * The most that Linux gives to a program as its arguments and environment, in bytes. Source: "Limits on size of arguments and
 * environment" of execve(2).
 */
export const MAX_PROCESS_BYTES = 6 * 1024 * 1024;

/** A program with so much could not start. */
export const processTooLarge = (): ContainerConfigError =>
  new ContainerConfigError(
    'the arguments and environment with their references expanded are larger than 6 MiB, which Linux does not take',
  );

/**
 * Expansion of `$(NAME)` in a container's command, arguments and environment.
 * `$$` is one `$`, so `$$(NAME)` stays `$(NAME)`; an unknown name and an unclosed `$(` stay as they are.
 * Throws a ContainerConfigError where more than MAX_PROCESS_BYTES come of it: variables that refer to each other grow exponentially.
 * Source: "Define Dependent Environment Variables" of the v1.33 documentation; third_party/forked/golang/expansion (behaviour).
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  // No reference is closed after the last parenthesis: to look for its end from each `$(` would take quadratic time.
  const closed = text.slice(0, text.lastIndexOf(')') + 1);
  let bytes = 0;
  const expanded = closed.replace(/\$(?:\$|\(([^)]*)\))/g, (match, name: string | undefined) => {
    const value = name === undefined ? '$' : (lookup(name) ?? match);
    bytes += value.length;
    if (bytes > MAX_PROCESS_BYTES) throw processTooLarge();
    return value;
  });
  return expanded + text.slice(closed.length).replaceAll('$$', () => '$');
}

/** As expand(), for words that together have MAX_PROCESS_BYTES at most. */
export function expandAll(words: readonly string[], lookup: (name: string) => string | undefined): string[] {
  let bytes = 0;
  return words.map((word) => {
    const expanded = expand(word, lookup);
    bytes += expanded.length;
    if (bytes > MAX_PROCESS_BYTES) throw processTooLarge();
    return expanded;
  });
}

/** As expand(), but throws where a name is unknown or its value empty, and names all of them, with upstream's words. */
export function expandStrict(text: string, lookup: (name: string) => string | undefined): string {
  const missing = new Set<string>();
  const expanded = expand(text, (name) => {
    const value = lookup(name);
    if (value === undefined || value === '') missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new Error(`missing value for ${[...missing].sort().join(', ')}`);
  return expanded;
}
