import { ContainerConfigError } from './container-config-error.ts';

/**
 * The maximum size of a program's arguments and environment on Linux, in bytes, if the stack limit does not make it smaller. Source:
 * "Limits on size of arguments and environment" of execve(2).
 */
export const MAX_PROCESS_BYTES = 6 * 1024 * 1024;

export const processTooLarge = (): ContainerConfigError =>
  new ContainerConfigError(
    'the arguments and environment with their references expanded are larger than 6 MiB, the limit of Linux',
  );

/**
 * Expands `$(NAME)` in a container's command, arguments and environment. `$$` becomes `$`, so `$$(NAME)` becomes `$(NAME)`; unknown names
 * and an unclosed `$(` are left unchanged.
 * Throws a ContainerConfigError if the values of the references exceed MAX_PROCESS_BYTES characters in total, since variables that refer to
 * each other may grow exponentially.
 * Source: "Define Dependent Environment Variables" of the v1.33 documentation; third_party/forked/golang/expansion (behavior).
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  // Expand only up to the last closing parenthesis: a search for `)` from each unclosed `$(` would take quadratic time.
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

/** Expands each word like expand(). The limit MAX_PROCESS_BYTES also applies to the sum of the expanded words. */
export function expandAll(words: readonly string[], lookup: (name: string) => string | undefined): string[] {
  let bytes = 0;
  return words.map((word) => {
    const expanded = expand(word, lookup);
    bytes += expanded.length;
    if (bytes > MAX_PROCESS_BYTES) throw processTooLarge();
    return expanded;
  });
}

/** Like expand(), but throws upstream's error, which lists the names that are unknown or have empty values. */
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
