// What is logged last when the gateway has started: the addresses that open.
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { urlOf } from './http/server.ts';

interface Listening {
  /** Where the service listens, for this machine. */
  readonly url: string;
  /** Port of the metrics; undefined: there are none. */
  readonly metricsPort: number | undefined;
}

type Addressed = Pick<Config, 'browsable' | 'graphiql' | 'host' | 'legacyMode' | 'publicUrl'>;

/** One line each, aligned. */
export function logAddresses(log: Logger, config: Addressed, listening: Listening): void {
  for (const [name, address] of listAddresses(config, listening)) {
    log.info({ address }, `${`${name}:`.padEnd(9)} ${address}`);
  }
}

function listAddresses(
  { browsable, graphiql, host, legacyMode, publicUrl }: Addressed,
  { url, metricsPort }: Listening,
): (readonly [name: string, address: string])[] {
  const base = publicUrl ?? url;
  return [
    ...(publicUrl === undefined ? [] : [['Local', `${url}/`] as const]),
    ...(browsable ? [['Gallery', `${base}/`] as const] : []),
    ['REST', `${base}/api/outfits/`],
    [graphiql ? 'GraphiQL' : 'GraphQL', `${base}/graphql`],
    // Or else the old service answers it for some or all.
    ...(browsable && legacyMode.percent === 100 ? [['API docs', `${base}/api/docs`] as const] : []),
    ...(metricsPort === undefined
      ? []
      : [['Metrics', `${urlOf(host, metricsPort)}/metrics`] as const]),
  ];
}
