// Messages between the parent and its workers, sent as structured clones: dates stay dates.
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Config } from '../../config.ts';
import type { UsageReport } from '../../observability/usage.ts';

export type Metric = MetricObjectWithValues<
  MetricValue<string> & {
    /** That of the series, where a metric has several, as histograms do. */
    readonly metricName?: string;
  }
>;

/** What a worker has counted since it started. */
export interface Report {
  readonly metrics: readonly Metric[];
  readonly usage: UsageReport;
}

export interface Assignment {
  readonly config: Config;
  readonly drawsPictures: boolean;
  /** Whether it is started with the gateway, and not in the place of another one. */
  readonly isFirst: boolean;
}

export type ToWorker =
  | { readonly type: 'build'; readonly assignment: Assignment }
  | { readonly type: 'listen' }
  | { readonly type: 'report' }
  | { readonly type: 'ping' }
  /** Why the gateway as a whole is not ready; undefined: it is, and readiness depends on the worker. */
  | { readonly type: 'problem'; readonly problem: string | undefined }
  /** Another process has met another database server than before: this one. */
  | { readonly type: 'look'; readonly server: string }
  | { readonly type: 'leave' }
  /** The gateway ends. @see Shutdown.close for `announce` */
  | { readonly type: 'close'; readonly announce: boolean }
  /** The parent has heard that it is closed, and hands it no connection any more. */
  | { readonly type: 'end' };

export type ToParent =
  /** It hears now: what is said before is lost. */
  | { readonly type: 'hearing' }
  | { readonly type: 'built' }
  | { readonly type: 'listening' }
  /** It cannot: a sentence for the operator, or a trace. */
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'report'; readonly report: Report | undefined }
  | { readonly type: 'pong' }
  | { readonly type: 'moved'; readonly server: string }
  /** It was asked to end by somebody else, and would like to be replaced. */
  | { readonly type: 'replace' }
  | { readonly type: 'closed'; readonly report: Report | undefined };
