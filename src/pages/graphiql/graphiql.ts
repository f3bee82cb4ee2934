// GraphiQL: the page and the files that .ci/bundle.js builds from main.jsx.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../config/config.ts';
import { packageFolder } from '../../config/package.ts';
import { type Representable, sendRepresentation } from '../../http/representation.ts';
import { answerErrors, notFound } from '../../rest/errors.ts';
import { favicon, logo } from '../parts/pictures.tsx';
import { colors } from '../parts/style.ts';

const folder = new URL('dist/graphiql/', packageFolder);

interface File extends Representable {
  readonly contentType: string;
  /** Content-Security-Policy of the page. */
  readonly policy?: string;
}

type GraphiQLConfig = Pick<Config, 'browsable' | 'compression' | 'graphqlIntrospection'>;

/** `sendPage` answers `/graphql`; the files are below `/graphql/assets/`. */
export function createGraphiQL(config: GraphiQLConfig) {
  const compresses = config.compression !== 'off';
  // Read on first use: most processes never serve it.
  let files: ReadonlyMap<string, File> | undefined;
  const send = async (request: FastifyRequest, reply: FastifyReply, name: string) => {
    files ??= readFiles(config);
    const file = files.get(name);
    if (!file) throw notFound();
    // Also on a 304.
    reply.header('Content-Type', file.contentType);
    if (file.policy) reply.header('Content-Security-Policy', file.policy);
    return sendRepresentation(request, reply, file, compresses);
  };
  const serveFiles = (app: FastifyInstance) => {
    answerErrors(app);
    const url = '/graphql/assets/:name';
    app.get<{ Params: { name: string } }>(url, { exposeHeadRoute: true }, (request, reply) => {
      if (compresses) reply.header('Vary', 'Accept-Encoding');
      return send(request, reply, request.params.name);
    });
  };
  return {
    serveFiles,
    sendPage: (request: FastifyRequest, reply: FastifyReply) => send(request, reply, ''),
  };
}

/** The files by name; the page has an empty name. */
function readFiles({ browsable, graphqlIntrospection }: GraphiQLConfig) {
  const files = new Map<string, File>();
  const read = (type: 'css' | 'javascript', end: string) => {
    const name = readdirSync(folder).find((one) => one.endsWith(end)) ?? '';
    const body = readFileSync(new URL(name, folder));
    files.set(name, { body, contentType: `text/${type}; charset=utf-8`, isImmutable: true });
    return { name, integrity: `sha256-${createHash('sha256').update(body).digest('base64')}` };
  };
  const [sheet, script] = [read('css', '.css'), read('javascript', '.js')];
  const policy = [
    "default-src 'none'",
    `script-src '${script.integrity}'`,
    // The editors add styles at run time.
    "style-src 'self' 'unsafe-inline'",
    'font-src data:',
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const link = (isThere: boolean, path: string, title: string) =>
    isThere ? `<a href="${path}">${title}</a>` : '';
  const body = Buffer.from(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Outfit gateway: GraphiQL</title>
<link rel="icon" href="${favicon}">
<link rel="stylesheet" href="graphql/assets/${sheet.name}">
<style>${colors}${style}</style>
<script defer src="graphql/assets/${script.name}" integrity="${script.integrity}"></script>
</head>
<body>
<header>
<h1>${logo}${link(browsable, './', 'Outfit gateway') || 'Outfit gateway'}</h1>
<nav aria-label="Service">
${link(browsable, 'outfits/', 'Outfits')}
${link(browsable, 'api/docs', 'API docs')}
${link(graphqlIntrospection, 'graphql/schema.graphql', 'Schema')}
</nav>
<div id="tools"></div>
</header>
<main id="root"><noscript><p>GraphiQL needs JavaScript.</p></noscript></main>
</body>
</html>
`);
  return files.set('', {
    body,
    contentType: 'text/html; charset=utf-8',
    policy: policy.join('; '),
  });
}

/** The header, contrast of colours, and the layout on a phone. */
const style = `
body { margin: 0; height: 100vh; height: 100dvh; display: flex; flex-direction: column }
main { flex: 1; min-height: 0 }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 16px; padding: 6px 12px; background: var(--surface); color: var(--text); border-bottom: 1px solid var(--line); font: 15px/1.5 system-ui, sans-serif }
header h1 { display: flex; align-items: center; gap: 6px; margin: 0; font-size: 15px }
header a { color: var(--accent); text-decoration: none; padding: 4px }
#tools { flex: 1 1 24rem; display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 16px; min-width: 0 }
fieldset { display: flex; align-items: center; gap: 4px; min-width: 0; margin: 0; padding: 0; border: 0; overflow-x: auto }
legend { float: left }
header :is(button, input) { font: inherit; min-height: 32px; box-sizing: border-box; padding: 2px 10px; color: var(--text); background: var(--sunk); border: 1px solid var(--soft); border-radius: 8px }
header input { width: 9rem }
header button { cursor: pointer }
header :is(a, button, input):is(:hover, :focus-visible) { outline: 2px solid var(--accent) }
/* Text must be read on its background: WCAG AA. */
.graphiql-container, .graphiql-dialog, .graphiql-tooltip, [data-radix-popper-content-wrapper] {
  --color-info: 208, 100%, 34%; --color-warning: 30, 100%, 27%; --color-tertiary: 188, 100%, 25%;
  --color-success: 158, 90%, 24%; --color-error: 13, 90%, 38%; --alpha-secondary: .9; --alpha-tertiary: .9;
}
.graphiql-container a { text-decoration: underline; text-underline-offset: .2em }
.graphiql-container .graphiql-logo { display: none }
.graphiql-footer { padding: 6px 0; text-align: right }
@media (max-width: 700px) {
  header nav { display: none }
  #tools { display: contents }
  header input { width: 6rem }
  header fieldset { order: 1; flex: 1 1 100% }
  #root > .graphiql-container { flex-direction: column }
  .graphiql-container .graphiql-sidebar { flex-direction: row; width: auto; padding: 0 8px }
  .graphiql-container .graphiql-sidebar > button[style] { margin: 0 0 0 auto !important }
  .graphiql-container .graphiql-main { position: relative; min-height: 0 }
  .graphiql-container .graphiql-sessions { margin: 0 4px; min-width: 0 }
  .graphiql-container .graphiql-main > .graphiql-plugin:not([style*='-1000px']) {
    position: absolute; inset: 0; z-index: 20; min-width: 0 !important; overflow: auto;
    background: hsl(var(--color-base));
  }
  .graphiql-container .graphiql-main > .graphiql-plugin + .graphiql-horizontal-drag-bar,
  .graphiql-container #graphiql-session > .graphiql-horizontal-drag-bar { display: none }
  .graphiql-container #graphiql-session { flex-direction: column }
  .graphiql-container #graphiql-session > .graphiql-response { border-top: 1px solid hsla(var(--color-neutral), .25) }
  .graphiql-container .graphiql-query-editor { flex-direction: column-reverse }
  .graphiql-container .graphiql-toolbar { flex-direction: row; width: auto }
  .graphiql-explorer-root select { max-width: 40vw }
}
`;
