// Messages between the parent and its workers, sent as structured clones, which keep dates.
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Config } from '../../config.ts';

export type Metric = MetricObjectWithValues<
  MetricValue<string> & {
    /** Name of the series, for metrics with several, such as histograms. */
    readonly metricName?: string;
  }
>;

/** Counts of a worker since its start. */
export interface Report {
  readonly metrics: readonly Metric[];
}

export interface StartMessage {
  readonly config: Config;
  readonly drawsPictures: boolean;
  /** Whether it starts with the gateway, and does not replace another worker. */
  readonly isFirst: boolean;
}

export type ToWorker =
  | ({ readonly type: 'start' } & StartMessage)
  | { readonly type: 'listen' }
  | { readonly type: 'report' }
  | { readonly type: 'ping' }
  /** Why the gateway as a whole is not ready; undefined: readiness depends on the worker alone. */
  | { readonly type: 'problem'; readonly problem: string | undefined; readonly logLevel: string }
  /** A failover was seen by another process, to this database server. */
  | { readonly type: 'check-server'; readonly server: string }
  | { readonly type: 'drain' }
  /** Graceful shutdown. @see Shutdown.close for `announce` */
  | { readonly type: 'close'; readonly announce: boolean }
  /** The parent knows that it is closed, and sends it no more connections. */
  | { readonly type: 'exit' };

export type ToParent =
  /** It receives messages from now on: earlier ones are lost. */
  | { readonly type: 'online' }
  | { readonly type: 'built' }
  | { readonly type: 'listening' }
  /** `reason` is a sentence for the operator, or a stack. */
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'report'; readonly report: Report | undefined }
  | { readonly type: 'pong' }
  | { readonly type: 'server-changed'; readonly server: string }
  /** It has received SIGTERM itself, and asks for a replacement. */
  | { readonly type: 'replace' }
  | { readonly type: 'closed'; readonly report: Report | undefined };
