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

/** As expand(), but names what is missing. Throws where a name is unknown, with upstream's words. */
export function expandStrict(text: string, lookup: (name: string) => string | undefined): string {
  return expand(text, (name) => {
    const value = lookup(name);
    if (value === undefined) throw new Error(`missing value for ${JSON.stringify(name)}`);
    return value;
  });
}
