// A worker: builds the service, listens and ends when it is told to. Without its parent, node:cluster ends it at once.
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { listen } from '../../http/server/server.ts';
import { describeError, listening } from '../exit.ts';
import { type Ground, openGround, openLog, sayGoodBye } from '../resources.ts';
import { buildService, type Service } from '../service.ts';
import { onUncaught } from '../signals.ts';
import type { Assignment, Report, ToParent, ToWorker } from './messages.ts';

export function serve(process: NodeJS.Process, tell: (message: ToParent) => void): void {
  let worker: Running | undefined;
  let exitCode = 0;
  let isEnding = false;
  let problem: string | undefined;

  const attempt = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      exitCode = 1;
      if (!isEnding) tell({ type: 'failed', reason: describeError(error) });
    }
  };
  let ended: Promise<void> | undefined;
  const sayClosed = async () => {
    await worker?.ground.close();
    tell({ type: 'closed', report: await readReport(worker) });
  };
  // A worker that leaves may be told to close, as it takes its time.
  const end = (close: (service: Service) => Promise<void>) =>
    attempt(async () => {
      isEnding = true;
      try {
        if (worker) await close(worker.service);
      } finally {
        ended ??= sayClosed();
        await ended;
      }
    });

  onUncaught((error) => {
    exitCode = 1;
    if (worker) sayGoodBye(worker.log, error);
    else tell({ type: 'failed', reason: describeError(error) });
    end(({ app, shutdown }) => shutdown.close(app, false));
  });
  process.on('message', async (message: ToWorker) => {
    switch (message.type) {
      case 'build':
        return attempt(async () => {
          worker = await build(message.assignment, () => problem);
          worker.ground.database.onFailover((server) => tell({ type: 'moved', server }));
          tell({ type: 'built' });
        });
      case 'listen':
        return attempt(async () => {
          if (worker) await listening(listen(worker.service.app, worker.config));
          tell({ type: 'listening' });
        });
      case 'problem':
        problem = message.problem;
        return;
      case 'look':
        // One that is away is found out by others.
        return worker?.ground.database.probeServer(message.server).catch(() => {});
      case 'leave':
        return end(({ app, shutdown }) => shutdown.leave(app));
      case 'close':
        return end(({ app, shutdown }) => shutdown.close(app, message.announce));
      case 'report':
        return tell({ type: 'report', report: await readReport(worker) });
      case 'ping':
        return tell({ type: 'pong' });
      case 'end':
        process.exit(exitCode);
    }
  });
  tell({ type: 'hearing' });
}

interface Running {
  readonly log: Logger;
  readonly config: Config;
  readonly ground: Ground;
  readonly service: Service;
}

async function build(
  { config, drawsPictures, isFirst }: Assignment,
  problem: () => string | undefined,
): Promise<Running> {
  const log = await openLog(config, true);
  const ground = await openGround(config, log);
  const onChange = (change: Error | undefined) =>
    log.debug(change?.message ?? `${ground.database.description} can be used`);
  const monitor = await ground.database.monitor(onChange, (sentence) => log.warn(sentence));
  const parts = { log, monitor, problem, drawsPictures, refusesStrangers: isFirst };
  return { log, config, ground, service: await buildService(config, ground, parts) };
}

async function readReport(worker: Running | undefined): Promise<Report | undefined> {
  const own = worker?.service.metrics;
  if (!own) return undefined;
  const metrics = (await own.registry.getMetricsAsJSON()) as Report['metrics'];
  return { metrics, usage: await own.readUsage() };
}
