/** Source: NodeStatus of the v1.33 API; pkg/kubelet/nodestatus and its default of nodeStatusMaxImages (order, limits). */
import type { ContainerImage } from '../../api/generated/types.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';

const MAX_IMAGES = 50;
const MAX_NAMES = 5;

export const reportedImages = (images: readonly ImageInfo[]): ContainerImage[] =>
  [...images]
    .sort((a, b) => b.sizeBytes - a.sizeBytes || (a.id < b.id ? 1 : -1))
    .slice(0, MAX_IMAGES)
    .map(({ digests, tags, sizeBytes }) => ({ names: [...digests, ...tags].slice(0, MAX_NAMES), sizeBytes }));
