// GraphiQL: the page and the files that .ci/bundle.js builds from main.jsx.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../config.ts';
import { type Representable, sendRepresentation } from '../../http/representation.ts';
import { packageFolder } from '../../package.ts';
import { answerErrors, notFound } from '../../rest/errors.ts';
import { logo } from '../parts/logo.ts';

const folder = new URL('dist/graphiql/', packageFolder);

interface File extends Representable {
  readonly contentType: string;
  /** Content-Security-Policy of the page. */
  readonly policy?: string;
}

type GraphiQLConfig = Pick<Config, 'browsable' | 'compression' | 'graphqlIntrospection'>;

/** `sendPage` answers `/graphql`; the files are below `/graphql/assets/`. */
export class GraphiQL {
  // Read on first use: most processes never serve it.
  #files: ReadonlyMap<string, File> | undefined;
  readonly #compresses: boolean;

  constructor(private readonly config: GraphiQLConfig) {
    this.#compresses = config.compression !== 'off';
  }

  /** Bound, since it is passed on as a function. */
  readonly sendPage = (request: FastifyRequest, reply: FastifyReply) =>
    this.#send(request, reply, '');

  serveFiles(app: FastifyInstance): void {
    answerErrors(app);
    const url = '/graphql/assets/:name';
    app.get<{ Params: { name: string } }>(url, { exposeHeadRoute: true }, (request, reply) => {
      if (this.#compresses) reply.header('Vary', 'Accept-Encoding');
      return this.#send(request, reply, request.params.name);
    });
  }

  async #send(request: FastifyRequest, reply: FastifyReply, name: string) {
    this.#files ??= readFiles(this.config);
    const file = this.#files.get(name);
    if (!file) throw notFound();
    // Also on a 304.
    reply.header('Content-Type', file.contentType);
    if (file.policy) reply.header('Content-Security-Policy', file.policy);
    return sendRepresentation(request, reply, file, this.#compresses);
  }
}

/** The files by name; the page has an empty name. */
function readFiles(config: GraphiQLConfig): ReadonlyMap<string, File> {
  const file = (type: 'css' | 'javascript', end: string) => {
    const name = readdirSync(folder).find((one) => one.endsWith(end)) ?? '';
    const body = readFileSync(new URL(name, folder));
    const contentType = `text/${type}; charset=utf-8`;
    return { name, body, contentType, isImmutable: true };
  };
  const [sheet, script] = [file('css', '.css'), file('javascript', '.js')];
  const integrity = `sha256-${createHash('sha256').update(script.body).digest('base64')}`;
  const policy = [
    "default-src 'none'",
    `script-src '${integrity}'`,
    // The editors add styles at run time.
    "style-src 'self' 'unsafe-inline'",
    'font-src data:',
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const body = Buffer.from(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Outfit gateway</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(logo)}">
<link rel="stylesheet" href="graphql/assets/${sheet.name}">
<style>${style}</style>
<script defer src="graphql/assets/${script.name}" integrity="${integrity}"></script>
</head>
<body>
<header><h1>Outfit gateway: GraphiQL</h1></header>
<main id="root"><noscript>${withoutScript(config)}</noscript></main>
</body>
</html>
`);
  const page = {
    body,
    contentType: 'text/html; charset=utf-8',
    policy: policy.join('; '),
  };
  return new Map<string, File>([
    ['', page],
    [sheet.name, sheet],
    [script.name, script],
  ]);
}

/** The way to the same data without JavaScript. */
function withoutScript({ browsable, graphqlIntrospection }: GraphiQLConfig): string {
  const links = [
    ...(browsable ? ['<a href="outfits/">The outfits, to look through</a>'] : []),
    ...(graphqlIntrospection ? ['<a href="graphql/schema.graphql">The schema, to read</a>'] : []),
    ...(browsable ? ['<a href="api/docs">The REST API</a>'] : []),
  ];
  return `<div class="plain">
<h2>GraphiQL needs JavaScript</h2>
<p>Without it, send queries from a terminal, with the address of this page for ADDRESS:</p>
<pre>curl ADDRESS --header 'Content-Type: application/json' \\
  --data '{"query":"{ outfits { count results { title } } }"}'</pre>
<ul>${links.map((link) => `<li>${link}</li>`).join('')}</ul>
</div>`;
}

/** Contrast of colours, the bar below the answer, and the layout on a phone. */
const style = `
body { margin: 0; height: 100vh; height: 100dvh; }
#root { height: 100%; }
body > header { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.plain { padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; }
.plain pre { white-space: pre-wrap; overflow-wrap: anywhere; }
/* Text must be read on its background: WCAG AA. */
.graphiql-container, .graphiql-dialog, .graphiql-tooltip, [data-radix-popper-content-wrapper] {
  --color-info: 208, 100%, 34%; --color-warning: 30, 100%, 27%; --color-tertiary: 188, 100%, 25%;
  --color-success: 158, 90%, 24%; --color-error: 13, 90%, 38%; --alpha-secondary: .9; --alpha-tertiary: .9;
}
.graphiql-container a { text-decoration: underline; text-underline-offset: .2em; }
.graphiql-footer { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; padding: 6px 0; }
.graphiql-footer :is(select, button, a) {
  font: inherit; color: inherit; background: none; border: 1px solid #8793a8; border-radius: 6px;
  padding: 3px 10px; text-decoration: none; cursor: pointer; min-height: 32px; box-sizing: border-box;
}
.graphiql-footer :is(select, button, a):is(:hover, :focus-visible) { border-color: #b0447a; outline: 1px solid #b0447a; }
.graphiql-footer output { margin-left: auto; font-variant-numeric: tabular-nums; }
.graphiql-footer option { color: #222; background: #fff; }
@media (max-width: 700px) {
  #root > .graphiql-container { flex-direction: column; }
  .graphiql-container .graphiql-sidebar { flex-direction: row; width: auto; padding: 4px 8px; }
  .graphiql-container .graphiql-sidebar > button[style] { margin: 0 0 0 auto !important; }
  .graphiql-container .graphiql-main { position: relative; min-height: 0; }
  .graphiql-container .graphiql-sessions { margin: 0 4px; min-width: 0; }
  .graphiql-container .graphiql-main > .graphiql-plugin:not([style*='-1000px']) {
    position: absolute; inset: 0; z-index: 20; min-width: 0 !important; overflow: auto;
    background: hsl(var(--color-base));
  }
  .graphiql-container .graphiql-main > .graphiql-plugin + .graphiql-horizontal-drag-bar,
  .graphiql-container #graphiql-session > .graphiql-horizontal-drag-bar { display: none; }
  .graphiql-container #graphiql-session { flex-direction: column; }
  .graphiql-container #graphiql-session > .graphiql-response { border-top: 1px solid hsla(var(--color-neutral), .25); }
  .graphiql-container .graphiql-logo { display: none; }
  .graphiql-explorer-root select { max-width: 40vw; }
  .graphiql-footer select { flex: 1 1 90px; min-width: 0; }
}
`;
