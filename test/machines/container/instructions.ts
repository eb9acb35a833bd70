/**
 * Reads a Dockerfile. Understands the instructions that lifepod's own Dockerfile uses, and throws for others, so that a test cannot pass by
 * skipping one.
 * Source: Dockerfile reference of Docker.
 */

export interface Instruction {
  kind: (typeof KINDS)[number];
  /** The text after the kind, with continued lines joined by spaces. */
  text: string;
}

export interface Stage {
  /** The image or earlier stage that the stage begins with. */
  from: string;
  name?: string;
  instructions: Instruction[];
}

const KINDS = ['RUN', 'COPY', 'WORKDIR', 'ENV', 'VOLUME', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT'] as const;

export function readStages(dockerfile: string): Stage[] {
  const lines = dockerfile
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trimStart().startsWith('#'))
    .join('\n')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n');
  const stages: Stage[] = [];
  for (const line of lines) {
    const [, kind = '', text = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    if (kind === 'FROM') {
      const [, from = '', , name] = /^(\S+)(\s+AS\s+(\S+))?$/.exec(text) ?? [];
      stages.push({ from, ...(name === undefined ? {} : { name }), instructions: [] });
    } else {
      const known = KINDS.find((each) => each === kind);
      if (known === undefined) throw new Error(`the instruction ${kind} is not understood: ${line}`);
      stages.at(-1)?.instructions.push({ kind: known, text });
    }
  }
  return stages;
}

/** The settings of the last stage for containers of the image. */
export interface ImageConfig {
  env: string[];
  volumes: string[];
  ports: string[];
  healthcheck: string[];
  entrypoint: string[];
}

export function imageConfig({ instructions }: Stage): ImageConfig {
  const texts = (kind: Instruction['kind']): string[] =>
    instructions.filter((each) => each.kind === kind).map(({ text }) => text);
  const list = (text = '[]'): string[] => JSON.parse(text) as string[];
  return {
    env: texts('ENV'),
    volumes: texts('VOLUME'),
    ports: texts('EXPOSE'),
    healthcheck: list(/CMD (\[.*\])$/.exec(texts('HEALTHCHECK')[0] ?? '')?.[1]),
    entrypoint: list(texts('ENTRYPOINT')[0]),
  };
}

/** The options of `docker run` that lifepod's README uses. */
export interface RunOptions {
  name: string;
  hostname: string;
  isPrivileged: boolean;
  cgroupNamespace: string;
  stopTimeoutSeconds: number;
  /** The name of a volume, and the folder where it is mounted. */
  volume: [name: string, path: string];
  /** An address and port outside, and the port of the container. */
  publish: [address: string, port: number, containerPort: number];
  image: string;
}

/** Throws if the command has an option that this file does not know. */
export function readRunCommand(command: string): RunOptions {
  const words = command.replaceAll('\\\n', ' ').trim().split(/\s+/);
  if (words.splice(0, 2).join(' ') !== 'docker run') throw new Error(`this is not docker run: ${command}`);
  const image = words.pop() ?? '';
  const values = new Map<string, string>();
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const [option = '', value] = word.split('=', 2);
    if (FLAGS.includes(option)) values.set(option, '');
    else if (OPTIONS.includes(option)) values.set(option, value ?? words.shift() ?? '');
    else throw new Error(`the option ${option} is not understood`);
  }
  const of = (option: string): string => {
    const value = values.get(option);
    if (value === undefined) throw new Error(`${option} is missing in: ${command}`);
    return value;
  };
  const [volume = '', path = ''] = of('-v').split(':');
  const [address = '', port, containerPort] = of('-p').split(':');
  of('-d');
  return {
    name: of('--name'),
    hostname: of('--hostname'),
    isPrivileged: values.has('--privileged'),
    cgroupNamespace: of('--cgroupns'),
    stopTimeoutSeconds: Number(of('--stop-timeout')),
    volume: [volume, path],
    publish: [address, Number(port), Number(containerPort)],
    image,
  };
}

const FLAGS = ['-d', '--privileged'];
const OPTIONS = ['--name', '--hostname', '--cgroupns', '--stop-timeout', '-v', '-p'];
