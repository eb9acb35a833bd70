/**
 * Finds images in an OCI image layout that cannot run on the operating system or the CPU of this machine, before containerd gets the
 * archive. containerd would import an image for any platform if the index names none.
 */
import { readdirSync } from 'node:fs';
import { architecture } from '../../../platform/architecture.ts';
import { type ArchiveContent, type OciDescriptor, ociName } from '../archive-reader.ts';

/** The other architectures that containerd accepts. Source: Only() of github.com/containerd/platforms. */
const ALSO_ACCEPTED: Readonly<Record<string, string>> = { amd64: '386', arm64: 'arm' };

/** absent: an index lists an image for this CPU, but the archive does not contain it. unknown: the archive does not say for which CPU. */
type Fit = 'fits' | 'unknown' | 'absent' | 'other';

interface Platform {
  os?: unknown;
  architecture?: unknown;
}

interface Look {
  blobs: ArchiveContent['blobs'];
  cpu: string;
  /** The search adds the platforms that this machine cannot run. */
  others: Set<string>;
}

/** A manifest, an index of manifests, or a configuration. Source: OCI Image Format Specification. */
interface Document extends Platform {
  config?: OciDescriptor;
  manifests?: OciDescriptor[];
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
    const others = new Set<string>();
    const look = { blobs, cpu, others };
    const fit = best(manifests.map((each) => (blobs.has(pathOf(each)) ? fitOf(each, look) : 'unknown')));
    if (fit === 'other' || fit === 'absent')
      return noImageForCpu(file, { cpu, fit, image: named.size > 1 ? ` ${name}` : '', others: [...others] });
  }
  return undefined;
}

/** `others`: the platforms of the images in the archive, such as windows/amd64; empty if they are not known. */
export function noImageForCpu(
  file: string,
  {
    cpu = architecture(),
    fit = 'other',
    image = '',
    others = [],
  }: { cpu?: string; fit?: 'absent' | 'other'; image?: string; others?: readonly string[] } = {},
): string {
  const only = others.length === 0 ? '' : `, only for ${others.join(', ')}`;
  const rest = fit === 'absent' ? ', although its index lists one: pull and save' : `${only}: build or save`;
  return `the image archive ${file} has no image${image} for this machine (linux/${cpu})${rest} it for linux/${cpu}`;
}

const best = (fits: readonly Fit[]): Fit =>
  (['fits', 'unknown', 'absent', 'other'] as const).find((fit) => fits.includes(fit)) ?? 'unknown';

const pathOf = ({ digest }: OciDescriptor): string => `blobs/${String(digest).replace(':', '/')}`;

/** A configuration counts only if the descriptor of the manifest names no platform. `above`: the indexes that lead to the descriptor. */
function fitOf(descriptor: OciDescriptor, look: Look, above: readonly string[] = []): Fit {
  const { blobs, cpu, others } = look;
  const fitOfPlatform = (platform: Platform): Fit => {
    if (accepts(platform, cpu)) return 'fits';
    // Attestations have the platform unknown/unknown.
    if (platform.architecture !== 'unknown') others.add(`${platform.os || 'linux'}/${platform.architecture}`);
    return 'other';
  };
  const platform = descriptor.platform ?? undefined;
  if (platform !== undefined && fitOfPlatform(platform) === 'other') return 'other';
  const missing = platform === undefined ? 'unknown' : 'absent';
  const path = pathOf(descriptor);
  if (!blobs.has(path)) return missing;
  if (above.includes(path)) return 'unknown';
  const { manifests, config } = documentOf(descriptor, blobs);
  if (manifests !== undefined) return best(manifests.map((each) => fitOf(each, look, [...above, path])));
  if (config === undefined) return 'unknown';
  if (!blobs.has(pathOf(config))) return missing;
  if (platform !== undefined) return 'fits';
  const { os, architecture: builtFor } = documentOf(config, blobs);
  if (typeof builtFor !== 'string' || builtFor === '') return 'unknown';
  return fitOfPlatform({ os, architecture: builtFor });
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

function accepts({ os, architecture: builtFor }: Platform, cpu: string): boolean {
  const name = String(builtFor).toLowerCase();
  const normal = ALIASES[name] ?? name;
  return String(os || 'linux').toLowerCase() === 'linux' && (normal === cpu || normal === ALSO_ACCEPTED[cpu]);
}

/** Returns an empty document for a blob that is not one, or does not have the specified form: containerd reports that. */
function documentOf(descriptor: OciDescriptor, blobs: Look['blobs']): Document {
  try {
    const document = JSON.parse(blobs.get(pathOf(descriptor)) ?? '{}') as Document;
    const children = [document.config ?? {}, ...(document.manifests ?? [])];
    return children.every((child) => typeof child === 'object' && child !== null) ? document : {};
  } catch {
    return {};
  }
}
