/**
 * `lifepod completion`: prints the script that completes lifepod in a shell. The scripts, in the files next to this one, contain no
 * commands and options: on Tab they run `lifepod __complete WORD…`, whose output complete.ts describes.
 */
import { readFileSync } from 'node:fs';

/** The help of lifepod does not list this command. */
export const COMPLETE = '__complete';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export const scriptFor = (shell: Shell): string =>
  readFileSync(new URL(`completion.${shell}`, import.meta.url), 'utf8');

export const COMPLETION_HELP = `
To complete lifepod in this shell:
  bash:  source <(lifepod completion bash)
  zsh:   source <(lifepod completion zsh)
  fish:  lifepod completion fish | source
The first lines of each script say how to use it in every shell. If kubectl_complete-lifepod, which
is next to lifepod, is on the PATH, the completion of kubectl completes 'kubectl lifepod' as well.`;
