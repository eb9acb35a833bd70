/** For tests: freezes values, and measures CPU time. */

/** Freezes the value and all values in it. A test that passes a frozen input fails if the tested code writes to it. */
export function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

/** Calls the function and returns the CPU time that the process used during the call, in milliseconds. */
export function cpuMillisOf(call: () => void): number {
  const start = process.cpuUsage();
  call();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}
