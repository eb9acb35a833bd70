/** Source: the plugin DefaultIngressClass of v1.33 (behavior). */
import type { Ingress, IngressClass } from '../../api/generated/types.ts';
import { CLASS_ANNOTATION } from '../../api/networking.k8s.io/v1/ingress/validation.ts';
import { defaultIngressClass as defaultName } from '../../api/networking.k8s.io/v1/ingress-class/index.ts';
import { INGRESSES } from '../../api/resources.ts';
import { resourcePrefix } from '../cache/keys.ts';
import type { PluginFactory } from './plugin.ts';
import { on } from './targets.ts';

const PREFIX = resourcePrefix('networking.k8s.io', 'ingressclasses');

export const defaultIngressClass: PluginFactory = ({ cache }) => ({
  name: 'DefaultIngressClass',
  handles: on(INGRESSES, 'CREATE'),
  admit({ object }) {
    const { metadata, spec } = object as Ingress;
    if (spec === undefined || spec.ingressClassName !== undefined) return;
    if (metadata.annotations?.[CLASS_ANNOTATION] !== undefined) return;
    const name = defaultName(cache.list(PREFIX) as IngressClass[]);
    if (name !== undefined) spec.ingressClassName = name;
  },
});
