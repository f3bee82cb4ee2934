// The addresses that open when the gateway has started.
import type { Config } from './config.ts';
import { urlOf } from './http/server.ts';

type Named = readonly [name: string, address: string];

/**
 * What is there, and its address.
 * @param url where the gateway listens, for this machine
 * @param metricsPort undefined: there are no metrics
 */
export function addressesOf(
  { browsable, graphiql, host, legacyMode, publicUrl }: Config,
  url: string,
  metricsPort: number | undefined,
): Named[] {
  const base = publicUrl ?? url;
  const all: (Named | false)[] = [
    publicUrl !== undefined && ['Local', `${url}/`],
    browsable && ['Gallery', `${base}/`],
    ['REST', `${base}/api/outfits/`],
    [graphiql ? 'GraphiQL' : 'GraphQL', `${base}/graphql`],
    // Or else the old service answers it for some or all.
    browsable && legacyMode.percent === 100 && ['API docs', `${base}/api/docs`],
    metricsPort !== undefined && ['Metrics', `${urlOf(host, metricsPort)}/metrics`],
  ];
  return all.filter((one) => one !== false);
}
