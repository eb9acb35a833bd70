/** Architectures whose names in Node.js differ from those in Go, in images and in the API. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** Returns the architecture of the machine as Go, images and the API name it. */
export const architecture = (): string => ARCHITECTURES[process.arch] ?? process.arch;
