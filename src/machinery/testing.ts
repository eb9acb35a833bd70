/** Helpers of tests. */

/** Freezes the value and all values in it. Writing to it throws, so that a test fails if the tested code modifies its input. */
export function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

/** The CPU time of the call, in milliseconds. */
export function cpuMillisOf(call: () => void): number {
  const start = process.cpuUsage();
  call();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}
