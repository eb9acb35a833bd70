import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';

/** The device number of /dev/null, with which a user can name an empty file. Source: devices.txt of Linux. */
const NULL_DEVICE = 0x103;

const isReadable = (found: Stats): boolean =>
  found.isFile() || found.isDirectory() || (found.isCharacterDevice() && found.rdev === NULL_DEVICE);

/**
 * Reads a file that the user names and that is read again later. Throws if the file is a named pipe, whose writer the read would wait for,
 * or a device, which may have no end.
 */
export function readTextFile(path: string): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!isReadable(fstatSync(fd))) throw new Error('it is not a regular file');
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}
