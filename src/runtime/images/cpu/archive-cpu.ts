/**
 * Finds images in an OCI image layout that cannot run on the CPU of this machine, before containerd gets the archive. containerd would
 * import an image for any CPU if the index names no platform.
 */
import { readdirSync } from 'node:fs';
import { architecture } from '../../../platform/architecture.ts';
import { type ArchiveContent, type OciDescriptor, ociName } from '../archive-reader.ts';

/** The other architectures that containerd accepts. Source: Only() of github.com/containerd/platforms. */
const ALSO_ACCEPTED: Readonly<Record<string, string>> = { amd64: '386', arm64: 'arm' };

/** absent: an index lists an image for this CPU, but the archive does not contain it. unknown: the archive does not say for which CPU. */
type Fit = 'fits' | 'unknown' | 'absent' | 'other';

type Blobs = ArchiveContent['blobs'];

/** A manifest, an index of manifests, or a configuration. Source: OCI Image Format Specification. */
interface Document {
  config?: OciDescriptor;
  manifests?: OciDescriptor[];
  os?: unknown;
  architecture?: unknown;
}

/** Source: kernel documentation, "Kernel Support for miscellaneous Binary Formats (binfmt_misc)". */
const BINARY_FORMATS = '/proc/sys/fs/binfmt_misc';

/** Returns whether the kernel runs programs for other CPUs with an emulator, such as QEMU or Rosetta. */
export function emulatesCpus(folder = BINARY_FORMATS): boolean {
  try {
    return readdirSync(folder).some((name) => /^(qemu-|rosetta|box64|FEX)/.test(name));
  } catch {
    return false;
  }
}

/** Returns why the archive is refused; undefined if each named image can run, or may be able to run. */
export function refusalForCpu(
  file: string,
  { index, blobs }: Pick<ArchiveContent, 'index' | 'blobs'>,
  cpu = architecture(),
): string | undefined {
  const named = Map.groupBy(
    (index?.manifests ?? []).filter((each) => ociName(each).length > 0),
    (each) => ociName(each).join(),
  );
  for (const [name, manifests] of named) {
    const fit = best(manifests.map((each) => (blobs.has(pathOf(each)) ? fitOf(each, blobs, cpu) : 'unknown')));
    if (fit === 'other' || fit === 'absent') return noImageForCpu(file, cpu, fit, named.size > 1 ? ` ${name}` : '');
  }
  return undefined;
}

export const noImageForCpu = (
  file: string,
  cpu = architecture(),
  fit: 'absent' | 'other' = 'other',
  image = '',
): string =>
  `the image archive ${file} has no image${image} for the CPU of this machine (${cpu})${fit === 'absent' ? `, although its index lists one: pull and save` : ': build or save'} it for linux/${cpu}`;

const best = (fits: readonly Fit[]): Fit =>
  (['fits', 'unknown', 'absent', 'other'] as const).find((fit) => fits.includes(fit)) ?? 'unknown';

const pathOf = ({ digest }: OciDescriptor): string => `blobs/${String(digest).replace(':', '/')}`;

/** A configuration counts only if the descriptor of the manifest names no platform. `above`: the indexes that lead to the descriptor. */
function fitOf(descriptor: OciDescriptor, blobs: Blobs, cpu: string, above: readonly string[] = []): Fit {
  const platform = descriptor.platform ?? undefined;
  if (platform !== undefined && !accepts(platform, cpu)) return 'other';
  const missing = platform === undefined ? 'unknown' : 'absent';
  const path = pathOf(descriptor);
  if (!blobs.has(path)) return missing;
  if (above.includes(path)) return 'unknown';
  const { manifests, config } = documentOf(descriptor, blobs);
  if (manifests !== undefined) return best(manifests.map((each) => fitOf(each, blobs, cpu, [...above, path])));
  if (config === undefined) return 'unknown';
  if (!blobs.has(pathOf(config))) return missing;
  if (platform !== undefined) return 'fits';
  const { os, architecture: builtFor } = documentOf(config, blobs);
  if (typeof builtFor !== 'string' || builtFor === '') return 'unknown';
  return accepts({ os, architecture: builtFor }, cpu) ? 'fits' : 'other';
}

/** The other names of architectures, in lower case. Source: normalizeArch() of github.com/containerd/platforms. */
const ALIASES: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  'x86-64': 'amd64',
  aarch64: 'arm64',
  i386: '386',
  armhf: 'arm',
  armel: 'arm',
};

function accepts({ os, architecture: builtFor }: { os?: unknown; architecture?: unknown }, cpu: string): boolean {
  const name = String(builtFor).toLowerCase();
  const normal = ALIASES[name] ?? name;
  return String(os || 'linux').toLowerCase() === 'linux' && (normal === cpu || normal === ALSO_ACCEPTED[cpu]);
}

/** Returns an empty document for a blob that is not one, or does not have the specified form: containerd reports that. */
function documentOf(descriptor: OciDescriptor, blobs: Blobs): Document {
  try {
    const document = JSON.parse(blobs.get(pathOf(descriptor)) ?? '{}') as Document;
    const children = [document.config ?? {}, ...(document.manifests ?? [])];
    return children.every((child) => typeof child === 'object' && child !== null) ? document : {};
  } catch {
    return {};
  }
}
