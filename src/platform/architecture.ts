/** Maps the names of CPU architectures in Node.js to those in Go, in images and in the API, if they differ. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** Returns the machine's architecture under the name that Go, images and the API use for it. */
export const architecture = (): string => ARCHITECTURES[process.arch] ?? process.arch;
