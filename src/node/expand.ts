/**
 * Expansion of `$(NAME)` in a container's command, arguments and environment.
 * `$$` is one `$`, so `$$(NAME)` stays `$(NAME)`; an unknown name and an unclosed `$(` stay as they are.
 * Source: "Define Dependent Environment Variables" of the v1.33 documentation; third_party/forked/golang/expansion (behaviour).
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  return text.replace(/\$(?:\$|\(([^)]*)\))/g, (match, name: string | undefined) =>
    name === undefined ? '$' : (lookup(name) ?? match),
  );
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
