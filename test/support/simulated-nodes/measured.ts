/** Returns a function that prints the CPU time and the time since its last call, and the memory of the process. */
export function measured(what: string): (step: string) => void {
  let [at, cpu] = [performance.now(), process.cpuUsage()];
  return (step) => {
    const used = process.cpuUsage(cpu);
    const seconds = (performance.now() - at) / 1000;
    const cpuSeconds = (used.user + used.system) / 1e6;
    const mebibytes = Math.round(process.memoryUsage().rss / 2 ** 20);
    console.log(`${what}: ${step} after ${seconds.toFixed(1)} s, CPU ${cpuSeconds.toFixed(1)} s, ${mebibytes} MiB`);
    [at, cpu] = [performance.now(), process.cpuUsage()];
  };
}
