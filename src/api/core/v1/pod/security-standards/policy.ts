/**
 * The policy of a Namespace: the level of the Pod Security Standards that each mode applies, from the labels of the Namespace.
 * Source: k8s.io/pod-security-admission/api of v1.33 (behavior and wording).
 */
import { type FieldError, invalid } from '../../../../../machinery/field-error.ts';

/** From the least to the most strict. */
const LEVELS = ['privileged', 'baseline', 'restricted'] as const;

export type Level = (typeof LEVELS)[number];

export type Mode = 'enforce' | 'audit' | 'warn';

/** A level as a version of Kubernetes defines it. */
export interface LevelVersion {
  level: Level;
  /** `latest`, or a minor version of v1 such as `v1.33`, which may be newer than this server. */
  version: string;
}

export type NamespacePolicy = Readonly<Record<Mode, LevelVersion>>;

/** The prefix of the labels of Namespaces that contain the policy, and of annotations of audit events. */
export const PREFIX = 'pod-security.kubernetes.io/';

const LATEST = 'latest';
const DEFAULT: LevelVersion = { level: 'privileged', version: LATEST };
const DEFAULTS: NamespacePolicy = { enforce: DEFAULT, audit: DEFAULT, warn: DEFAULT };

const VERSION = /^v1\.(0|[1-9][0-9]*)$/;
const MAX_MINOR = 2n ** 63n - 1n;

const isLevel = (value: string): value is Level => (LEVELS as readonly string[]).includes(value);

function isVersion(value: string): boolean {
  const minor = VERSION.exec(value)?.[1];
  return value === LATEST || (minor !== undefined && BigInt(minor) <= MAX_MINOR);
}

export const minorOf = ({ version }: LevelVersion): number =>
  version === LATEST ? Number.POSITIVE_INFINITY : Number(VERSION.exec(version)?.[1]);

/** Returns a text such as `restricted:latest`. */
export const levelText = ({ level, version }: LevelVersion): string => `${level}:${version}`;

/**
 * Adds the errors in the labels to `errors`. An invalid level counts as restricted for enforce, and as privileged for the other modes; an
 * invalid version counts as the latest one.
 */
function ofMode(mode: Mode, labels: Readonly<Record<string, string>>, errors: FieldError[]): LevelVersion {
  const report = (label: string, value: string, text: string): void => {
    errors.push(invalid(`metadata.labels[${label}]`, value, text));
  };
  const label = PREFIX + mode;
  const { [label]: level = DEFAULT.level, [`${label}-version`]: version = LATEST } = labels;
  const read: LevelVersion = { level: mode === 'enforce' ? 'restricted' : 'privileged', version: LATEST };
  if (isLevel(level)) read.level = level;
  else report(label, level, `must be one of ${LEVELS.join(', ')}`);
  if (isVersion(version)) read.version = version;
  else report(`${label}-version`, version, 'must be "latest" or "v1.x"');
  return read;
}

export function policyOf(labels: Readonly<Record<string, string>> = {}): {
  policy: NamespacePolicy;
  errors: FieldError[];
} {
  const errors: FieldError[] = [];
  if (!Object.keys(labels).some((label) => label.startsWith(PREFIX))) return { policy: DEFAULTS, errors };
  const policy = {
    enforce: ofMode('enforce', labels, errors),
    audit: ofMode('audit', labels, errors),
    warn: ofMode('warn', labels, errors),
  };
  return { policy, errors };
}

/** Whether Pods that `old` allows may violate `now`. */
export const mayForbidMore = (now: LevelVersion, old: LevelVersion): boolean =>
  now.level !== 'privileged' && (now.version !== old.version || LEVELS.indexOf(now.level) > LEVELS.indexOf(old.level));
