// A worker process: builds the service, listens and closes on messages of its parent.
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { listen } from '../../http/server/server.ts';
import { describeError, explainListenError } from '../exit.ts';
import { logShutdown, openLog, openResources, type Resources } from '../resources.ts';
import { buildService, type Service } from '../service.ts';
import { onUncaught } from '../signals.ts';
import type { Report, StartMessage, ToParent, ToWorker } from './messages.ts';

interface Running {
  readonly log: Logger;
  readonly config: Config;
  readonly resources: Resources;
  readonly service: Service;
}

export class WorkerProcess {
  #running: Running | undefined;
  #closed: Promise<void> | undefined;
  #isClosing = false;
  #exitCode = 0;
  #problem: string | undefined;
  /** Fastify has a child of the log, with a level of its own. */
  #logs: Pick<Logger, 'level'>[] = [];

  constructor(
    private readonly process: NodeJS.Process,
    private readonly send: (message: ToParent) => void,
  ) {}

  start(): void {
    onUncaught((error) => {
      this.#exitCode = 1;
      if (this.#running) logShutdown(this.#running.log, error);
      else this.send({ type: 'failed', reason: describeError(error) });
      this.#close(({ app, shutdown }) => shutdown.close(app, false));
    });
    this.process.on('message', (message: ToWorker) => this.#handle(message));
    this.send({ type: 'online' });
  }

  async #handle(message: ToWorker): Promise<void> {
    switch (message.type) {
      case 'start':
        return this.#attempt(() => this.#build(message));
      case 'listen':
        return this.#attempt(() => this.#listen());
      case 'problem':
        this.#problem = message.problem;
        for (const log of this.#logs) log.level = message.logLevel;
        return;
      case 'check-server':
        // An unreachable server is found by the monitor.
        return this.#running?.resources.database.probeServer(message.server).catch(() => {});
      case 'drain':
        return this.#close(({ app, shutdown }) => shutdown.drain(app));
      case 'close':
        return this.#close(({ app, shutdown }) => shutdown.close(app, message.announce));
      case 'report':
        return this.send({ type: 'report', report: await this.#readReport() });
      case 'ping':
        return this.send({ type: 'pong' });
      case 'exit':
        this.process.exit(this.#exitCode);
    }
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#exitCode = 1;
      if (!this.#isClosing) this.send({ type: 'failed', reason: describeError(error) });
    }
  }

  async #build({ config, drawsPictures, isFirst }: StartMessage): Promise<void> {
    const log = await openLog(config, true);
    const resources = await openResources(config, log);
    const { database } = resources;
    const onChange = (change: Error | undefined) =>
      log.debug(change?.message ?? `${database.description} can be used`);
    const monitor = await database.monitor(onChange, (sentence) => log.warn(sentence));
    const problem = () => this.#problem;
    const options = { log, monitor, problem, drawsPictures, refusesStrangers: isFirst };
    const service = await buildService(config, resources, options);
    this.#logs = [log, service.app.log];
    this.#running = { log, config, resources, service };
    database.onFailover((server) => this.send({ type: 'server-changed', server }));
    this.send({ type: 'built' });
  }

  async #listen(): Promise<void> {
    if (this.#running) {
      const { config, service } = this.#running;
      await explainListenError(listen(service.app, config));
    }
    this.send({ type: 'listening' });
  }

  /** A worker that drains may be told to close: the resources close once, after the first of both. */
  #close(closeService: (service: Service) => Promise<void>): Promise<void> {
    return this.#attempt(async () => {
      this.#isClosing = true;
      try {
        if (this.#running) await closeService(this.#running.service);
      } finally {
        this.#closed ??= this.#closeResources();
        await this.#closed;
      }
    });
  }

  async #closeResources(): Promise<void> {
    await this.#running?.resources.close();
    this.send({ type: 'closed', report: await this.#readReport() });
  }

  async #readReport(): Promise<Report | undefined> {
    const own = this.#running?.service.metrics;
    if (!own) return undefined;
    const metrics = (await own.registry.getMetricsAsJSON()) as Report['metrics'];
    return { metrics };
  }
}
