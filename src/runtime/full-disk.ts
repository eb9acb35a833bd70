/** Groups: the path that could not be written, in quotes, without quotes, or after the message. */
const FULL =
  /(?:(?:"(\/[^"]*)"|(?<=^|[\s'(=])(\/[^\s":]*)): )?(?:no space left on device|disk quota exceeded)(?:, \w+ '(\/[^']+)')?/;
/** Matches messages that use the same words about a limit of the kernel: of keys, control groups or inotify watches. */
const OTHER_LIMIT = /session key|keyring|\/sys\/fs\/cgroup|inotify/;
/** The folders whose content means nothing to a user, and all that follows them in a path. */
const INNER = /\/(?:io\.containerd\.|tmpmounts\/).*$/s;

/** Returns undefined for other messages. `folder`: on the full disk; undefined if the message does not name a path. */
export function fullDisk(message: string): { folder: string | undefined } | undefined {
  const found = FULL.exec(message);
  if (found === null || OTHER_LIMIT.test(message)) return undefined;
  const path = found[1] ?? found[2] ?? found[3];
  if (path === undefined) return { folder: undefined };
  const folder = INNER.test(path) ? path.replace(INNER, '') : path.slice(0, path.lastIndexOf('/'));
  return { folder: folder || '/' };
}

/** Returns a clause such as `the disk of the folder /var/lib/lifepod/containerd/root is full`; undefined for other messages. */
export function fullDiskText(message: string): string | undefined {
  const full = fullDisk(message);
  return full && `the disk of ${full.folder === undefined ? 'its node' : `the folder ${full.folder}`} is full`;
}
