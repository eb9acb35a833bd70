import type { Node, NodeCondition } from '../../../generated/types.ts';

/** Returns undefined if the node has not reported the condition. */
export const readyCondition = (node: Node | undefined): NodeCondition | undefined =>
  node?.status?.conditions?.find(({ type }) => type === 'Ready');

export const isNodeReady = (node: Node | undefined): boolean => readyCondition(node)?.status === 'True';
