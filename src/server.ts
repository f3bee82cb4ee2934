// The gateway without a command line of its own: node dist/server.js is what outfit-gateway is.
import './commands/cli.ts';
