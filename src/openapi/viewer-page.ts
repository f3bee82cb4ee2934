// The page at /api/docs: its HTML, and what it has beside Swagger UI's own style and script.

interface PageOptions {
  /** Where the files are, relative to the page. */
  readonly folder: string;
  /** An SVG. */
  readonly logo: string;
  readonly hasGraphiQL: boolean;
}

export const page = ({ folder, logo, hasGraphiQL }: PageOptions) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>REST API · Outfit gateway</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(logo)}">
<link rel="stylesheet" href="${folder}/swagger-ui.css">
<link rel="stylesheet" href="${folder}/page.css">
</head>
<body>
<header>
<a class="home" href="../">${logo}<span>Outfit gateway</span></a>
<nav aria-label="Gateway">
${hasGraphiQL ? '<a href="../graphql">GraphiQL</a>\n' : ''}<a href="openapi.json">openapi.json</a>
</nav>
</header>
<div id="viewer"><noscript>This page needs JavaScript. The document itself is <a href="openapi.json">openapi.json</a>.</noscript></div>
<script src="${folder}/swagger-ui.js"></script>
<script src="${folder}/page.js"></script>
</body>
</html>
`;

export const script = `
const dark = matchMedia('(prefers-color-scheme: dark)');
const setTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', setTheme);
setTheme();
SwaggerUIBundle({
  url: 'openapi.json',
  domNode: document.querySelector('#viewer'),
  deepLinking: true,
  displayRequestDuration: true,
  // Tokens stay in memory: what a browser keeps can be stolen from there.
  persistAuthorization: false,
  // The address in the document may be another one of this service, which this page may not ask.
  requestInterceptor: (request) => {
    const { pathname, search } = new URL(request.url, location.href);
    return { ...request, url: location.origin + pathname + search };
  },
  // It would show the document to another host.
  validatorUrl: null,
});
`;

export const style = `
body { margin: 0; background: #fafafa; font-family: system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; justify-content: space-between;
  padding: .75rem 1.25rem; background: #fff; border-bottom: 1px solid #ddd; }
header a { color: #8a2f60; text-decoration: none; }
header a:hover, header a:focus-visible { text-decoration: underline; }
header .home { display: flex; gap: .5rem; align-items: center; font-weight: 600; font-size: 1.1rem; color: #222; }
nav { display: flex; gap: 1.25rem; }
.dark-mode body { background: #1c2022; }
.dark-mode header { background: #16191a; border-color: #333; }
.dark-mode header a { color: #f0a5c9; }
.dark-mode header .home { color: #eee; }
@media (max-width: 600px) {
  .swagger-ui .wrapper { padding: 0 12px; }
  .swagger-ui .info { margin: 20px 0; }
  .swagger-ui .opblock .opblock-summary-path { max-width: calc(100vw - 170px); }
  .swagger-ui { overflow-x: clip; }
  .swagger-ui .microlight { white-space: pre-wrap; overflow-wrap: anywhere; }
  .swagger-ui table { table-layout: fixed; }
  .swagger-ui table td, .swagger-ui table th { overflow-wrap: anywhere; }
  .swagger-ui .table-container { overflow-x: auto; padding: 0 10px; }
}
`;
