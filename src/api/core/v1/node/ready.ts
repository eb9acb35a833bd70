/** Reads the condition Ready of a Node. Pure. */
import type { Node, NodeCondition } from '../../../generated/types.ts';

/** Returns the condition Ready of the node; undefined if the node has not reported it, or if no node is given. */
export const readyCondition = (node: Node | undefined): NodeCondition | undefined =>
  node?.status?.conditions?.find(({ type }) => type === 'Ready');

/** Returns whether the condition Ready of the node is True. */
export const isNodeReady = (node: Node | undefined): boolean => readyCondition(node)?.status === 'True';
