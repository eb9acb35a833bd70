/** Scripts that write the files that the README instructs users to create. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from '../support/lifepod.ts';

const README = readFileSync(join(REPOSITORY, 'README.md'), 'utf8');

/** Returns the code blocks of a section of the README. Throws if the README has no such section. */
export function blocksOf(section: string): { language: string; text: string }[] {
  const [, text] = README.split(`\n## ${section}\n`);
  if (text === undefined) throw new Error(`README has no section "${section}"`);
  const [own = ''] = text.split('\n## ');
  return [...own.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language = '', code = '']) => ({ language, text: code }));
}

/** The script writes `text`, which must end with a newline, to the file `path`, whose folder must exist. */
export const writes = (path: string, text: string): string => `cat >${path} <<'END_OF_FILE'\n${text}END_OF_FILE`;

/** Writes the files in the section's blocks of the language. A file begins with a comment that is its path. */
function filesOf(section: string, language: string): string {
  const files = blocksOf(section)
    .filter((block) => block.language === language)
    .flatMap(({ text }) => text.split(/^(?=# \/)/m));
  return files
    .map((file) => {
      const path = /^# (\/\S+)\n/.exec(file)?.[1];
      if (path === undefined) throw new Error(`a ${language} block of "${section}" does not begin with a path`);
      return writes(path, file);
    })
    .join('\n');
}

const RUNTIME = "On a machine's own runtime";

export const CNI_CONFIGURATION = '/etc/cni/net.d/10-pods.conflist';

export function cniConfiguration(): string {
  const [json] = blocksOf(RUNTIME).filter(({ language }) => language === 'json');
  if (json === undefined || !README.includes(CNI_CONFIGURATION)) throw new Error('README has no CNI configuration');
  return `mkdir -p /etc/cni/net.d\n${writes(CNI_CONFIGURATION, json.text)}`;
}

/** The configuration has systemd as the cgroup driver. */
export const containerdConfiguration = (): string => filesOf(RUNTIME, 'toml');
