// @ts-nocheck: part of this file runs in browsers, whose types this project does not have.
// The page at /api/docs: HTML, style and script around Swagger UI.

/** @param {{ folder: string; logo: string; hasGraphiQL: boolean }} options `folder` has the files; `logo` is SVG */
export const page = ({ folder, logo, hasGraphiQL }) => `<!doctype html>
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
/* Swagger UI's own colours, where they could not be read: WCAG AA. */
.swagger-ui .info .title small pre { color: #fff; }
.swagger-ui .info .title small { background: #5a6070; }
.swagger-ui .info .title small.version-stamp { background: #3f6b00; }
.swagger-ui .download-contents { background: #5a6070; }
.swagger-ui .opblock.opblock-get .opblock-summary-method, .swagger-ui .btn.execute { background: #1a63b0; border-color: #1a63b0; }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #18704b; }
.swagger-ui .json-schema-2020-12__constraint--string { background: #7a5600; }
.swagger-ui .microlight span[style*='rgb(211, 99, 99)'] { color: #ffa8a8 !important; }
html:not(.dark-mode) .swagger-ui .info a { color: #1a63b0; }
html:not(.dark-mode) .swagger-ui .btn.authorize, html:not(.dark-mode) .swagger-ui .btn.authorize span { color: #18704b; border-color: #18704b; }
html:not(.dark-mode) .swagger-ui .btn.cancel { color: #c02b2b; border-color: #c02b2b; }
html:not(.dark-mode) .swagger-ui .parameter__in { color: #555; }
html:not(.dark-mode) .swagger-ui .renderedMarkdown code { color: #5b0aa8; }
html:not(.dark-mode) .swagger-ui .json-schema-2020-12-expand-deep-button { color: #505050; }
html:not(.dark-mode) .swagger-ui .response-control-media-type__accept-message { color: #0b5c0b; }
.dark-mode .swagger-ui .headers .header-col { color: #e4e6e6; }
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

/** The script. The browser gets the source of this function: it can use nothing from outside. */
export function showDocument() {
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.classList.toggle('dark-mode', isDark);

  /** Accessibility that Swagger UI lacks (WCAG): attributes by selector; null removes one. */
  const attributes = [
    ['.information-container', { role: 'region', 'aria-label': 'About' }],
    ['.scheme-container', { role: 'region', 'aria-label': 'Server and token' }],
    ['#servers', { 'aria-label': 'Server' }],
    ['.close-modal', { 'aria-label': 'Close' }],
    // The accessible name must contain the visible label.
    ['.modal-btn', { 'aria-label': null }],
    // Scrollable regions need keyboard access.
    ['pre.microlight', { tabindex: '0' }],
    // A link inside a button is invalid, and the button leads to the same place.
    ['button a', { href: null }],
    ['table', { role: null }],
    // The headings skip the second level.
    ['h3', { 'aria-level': '2' }],
    ['h4', { 'aria-level': '3' }],
    ['h5', { 'aria-level': '4' }],
  ];
  const viewer = document.querySelector('#viewer');
  const mend = () => {
    for (const [selector, values] of attributes) {
      for (const element of viewer.querySelectorAll(selector)) {
        for (const [name, value] of Object.entries(values)) {
          if (value === null) element.removeAttribute(name);
          else element.setAttribute(name, value);
        }
      }
    }
    for (const select of viewer.querySelectorAll('[data-param-name] select')) {
      select.ariaLabel = select.closest('[data-param-name]').dataset.paramName;
    }
  };
  new MutationObserver(mend).observe(viewer, { childList: true, subtree: true });

  SwaggerUIBundle({
    url: 'openapi.json',
    domNode: viewer,
    deepLinking: true,
    displayRequestDuration: true,
    // PUBLIC_URL may be another origin, which the policy of this page forbids.
    requestInterceptor: (request) => {
      const { pathname, search } = new URL(request.url, location.href);
      return { ...request, url: location.origin + pathname + search };
    },
    // It would send the document to another host.
    validatorUrl: null,
  });
}
