// What the page at /api/docs looks like beside Swagger UI's own style.

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
html:not(.dark-mode) .swagger-ui .info .url { color: #1a63b0; }
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
