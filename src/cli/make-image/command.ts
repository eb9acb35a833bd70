import type { Command } from 'commander';
import { dataDirOption } from '../../engine/settings.ts';

export function addMakeCommand(image: Command): void {
  image
    .command('make')
    .description(
      "make busybox images from this machine's busybox, and load them; Pods that wait for one of them start, except with imagePullPolicy Always",
    )
    .argument('<image...>', 'busybox with or without a tag, such as busybox:1.28')
    .addOption(dataDirOption())
    .action(async (images: string[], options: { dataDir: string }) =>
      (await import('./make-image.ts')).makeImages(options.dataDir, images),
    );
}
