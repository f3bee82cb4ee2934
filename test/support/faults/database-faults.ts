// What can happen to a PostgreSQL, and how it ends.
import type { startEmbeddedPostgres } from '../databases/embedded-postgres.js';
import type { Network } from './network.ts';

export interface Fault {
  begin(): unknown;
  end(): unknown;
}

/** @param parts the server and the way to it, as soon as they are there */
export function faultsOf(
  parts: () => {
    readonly postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
    readonly network: Network;
  },
): Record<string, Fault> {
  return {
    'is shut down': { begin: () => parts().postgres.stop(), end: () => parts().postgres.start() },
    crashes: { begin: () => parts().postgres.crash(), end: () => parts().postgres.start() },
    // To a client, a server that is frozen is the same.
    'is behind a network that swallows everything': {
      begin: () => parts().network.swallow(),
      end: () => parts().network.restore(),
    },
  };
}
