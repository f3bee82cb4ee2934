// What a worker does: it builds the service, listens when it is told to, and ends when it is told to. It
// ends at once when the parent is gone: node:cluster sees to that.

import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { describeError, listening } from '../failure.ts';
import { type Ground, openGround } from '../ground.ts';
import { listen } from '../http/server.ts';
import { buildService, type Service } from '../service.ts';
import { openLog, sayGoodBye } from '../start-up.ts';
import type { Beginning, Report, ToParent, ToWorker } from './messages.ts';

/** All that a worker may touch of its process. */
export interface Parent {
  tell(message: ToParent): void;
  listen(hear: (message: ToWorker) => void): void;
  exit(code: number): void;
  /** Calls back on an error that nothing catches. */
  onUncaught(close: (error: Error) => void): void;
}

/** Serves until the parent ends it. */
export function serve(parent: Parent): void {
  let worker: Running | undefined;
  let exitCode = 0;
  let isEnding = false;
  /** Why the gateway as a whole is not ready. */
  let problem: string | undefined;

  const attempt = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      exitCode = 1;
      if (!isEnding) parent.tell({ type: 'failed', reason: describeError(error) });
    }
  };
  let ended: Promise<void> | undefined;
  const sayClosed = async () => {
    await worker?.ground.close();
    parent.tell({ type: 'closed', report: await readReport(worker) });
  };
  // A worker that leaves may be told to close, as it takes its time.
  const end = async (close: (running: Running) => Promise<void>) => {
    isEnding = true;
    try {
      if (worker) await close(worker);
    } finally {
      ended ??= sayClosed();
      await ended;
    }
  };

  parent.onUncaught((error) => {
    exitCode = 1;
    if (worker) sayGoodBye(worker.log, error);
    else parent.tell({ type: 'failed', reason: describeError(error) });
    attempt(() => end(({ service }) => service.shutdown.close(service.app, false)));
  });
  parent.listen(async (message) => {
    if (message.type === 'build') {
      await attempt(async () => {
        worker = await build(message.assignment, () => problem);
        worker.ground.database.onMove((server) => parent.tell({ type: 'moved', server }));
        parent.tell({ type: 'built' });
      });
    } else if (message.type === 'listen') {
      await attempt(async () => {
        if (worker) await listening(listen(worker.service.app, worker.config));
        parent.tell({ type: 'listening' });
      });
    } else if (message.type === 'problem') {
      problem = message.problem;
    } else if (message.type === 'look') {
      // One that is away is found out by others.
      worker?.ground.database.lookForServer(message.server).catch(() => {});
    } else if (message.type === 'leave') {
      await attempt(() => end(({ service }) => service.shutdown.leave(service.app)));
    } else if (message.type === 'close') {
      const { announce } = message;
      await attempt(() => end(({ service }) => service.shutdown.close(service.app, announce)));
    } else if (message.type === 'report') {
      parent.tell({ type: 'report', report: await readReport(worker) });
    } else if (message.type === 'ping') parent.tell({ type: 'pong' });
    else parent.exit(exitCode);
  });
  parent.tell({ type: 'hearing' });
}

interface Running {
  readonly log: Logger;
  readonly config: Config;
  readonly ground: Ground;
  readonly service: Service;
}

async function build(
  { config, drawsPictures, isFirst }: Beginning,
  findProblem: () => string | undefined,
): Promise<Running> {
  const log = await openLog(config, true);
  const ground = await openGround(config, log);
  // The parent says it, once for all.
  const onChange = (problem: Error | undefined) =>
    log.debug(problem?.message ?? `${ground.database.description} can be used`);
  const monitor = await ground.database.monitor(onChange, (sentence) => log.warn(sentence));
  const parts = { log, monitor, findProblem, drawsPictures, refusesStrangers: isFirst };
  const service = await buildService(config, ground, parts);
  return { log, config, ground, service };
}

async function readReport(worker: Running | undefined): Promise<Report | undefined> {
  const metrics = worker?.service.metrics;
  return (
    metrics && {
      metrics: (await metrics.registry.getMetricsAsJSON()) as Report['metrics'],
      usage: await metrics.readUsage(),
    }
  );
}
