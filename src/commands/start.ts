// outfit-gateway start: reads the settings and starts the gateway.
import { ConfigError, readConfig } from '../config/config.ts';
import { lastLine } from '../process/exit.ts';
import { isShuttingDown } from '../process/signals.ts';
import type { Io } from './command.ts';
import { createLine } from './options/command-line.ts';

export const line = () =>
  createLine('start').description(
    'Starts the gateway. Settings are options, variables such as PORT=8080, or lines in the file .env: an option wins over the environment, and that over the file. .env.example says more of each. Others on this machine can read options in the list of processes: keep passwords and secrets out of them.',
  );

export const listsSettings = true;

export async function run({ env, stderr }: Io): Promise<number> {
  try {
    const config = readConfig(env);
    // Loading takes a second: help and configuration errors come before it.
    const { start } = await import('../process/bootstrap.ts');
    await start(config);
  } catch (error) {
    if (!isShuttingDown()) {
      stderr.write(lastLine(error, env['LOG_FORMAT']));
      return error instanceof ConfigError ? 2 : 1;
    }
  }
  return new Promise(() => {});
}
