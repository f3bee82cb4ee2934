// What the page of GraphiQL looks like beside GraphiQL itself: a bar below it, and a phone.

export const style = `
body { display: flex; flex-direction: column; height: 100vh; height: 100dvh; margin: 0; }
#root { flex: 1; min-height: 0; }
#root .graphiql-container { height: 100%; }
.gateway-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
/* What stands for something in colour alone must be read on its background: WCAG AA. */
.graphiql-container, .graphiql-dialog, .graphiql-tooltip, [data-radix-popper-content-wrapper] {
  --color-info: 208, 100%, 34%; --color-warning: 30, 100%, 27%; --color-tertiary: 188, 100%, 25%;
  --color-success: 158, 90%, 24%; --color-error: 13, 90%, 38%; --alpha-secondary: .9;
}
.graphiql-container a { text-decoration: underline; text-underline-offset: .2em; }
.graphiql-container .monaco-editor .line-numbers { color: hsla(var(--color-neutral), .9) !important; }
.gateway-bar {
  display: flex; flex-wrap: wrap; gap: 4px 14px; align-items: center; padding: 6px 16px 8px;
  font: 14px/1.5 system-ui, sans-serif; color: #3b4b68; background: #fff;
}
.gateway-bar select, .gateway-bar button, .gateway-bar a {
  font: inherit; color: inherit; background: none; border: 1px solid #8793a8; border-radius: 6px;
  padding: 3px 10px; text-decoration: none; display: inline-flex; align-items: center; cursor: pointer; min-height: 32px; box-sizing: border-box;
}
.gateway-bar :is(select, button, a):is(:hover, :focus-visible) { border-color: #b0447a; outline: 1px solid #b0447a; }
.gateway-bar output { margin-left: auto; font-variant-numeric: tabular-nums; }
.gateway-bar option { color: #222; background: #fff; }
@media (prefers-color-scheme: dark) {
  body:not(.graphiql-light) .gateway-bar { color: #cdd5e3; background: #212a3b; }
}
body.graphiql-dark .gateway-bar { color: #cdd5e3; background: #212a3b; }
@media (max-width: 700px) {
  .graphiql-container .graphiql-container { flex-direction: column; }
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
  .gateway-bar { gap: 4px 8px; padding: 4px 8px 6px; }
  .gateway-bar select { flex: 1 1 90px; min-width: 0; }
  .gateway-bar output { width: 100%; margin: 0; min-height: 1.5em; }
}
`;
