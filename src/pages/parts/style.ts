// The stylesheet, inlined into each page: no path that a proxy must route. It avoids double quotes, `<` and `&`, so that
// escaping does not change it.
import { favicon } from './pictures.tsx';

export const colors = `
:root {
  color-scheme: light dark;
  --back: #faf7f5; --surface: #ffffff; --sunk: #f3edea; --text: #241f24; --soft: #675e66;
  --line: #e5dcd9; --accent: #a83a70; --on-accent: #ffffff; --tint: #f7e6ee; --wrong: #a32a1c; --right: #1f6b45;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #171418; --surface: #211c22; --sunk: #2b252c; --text: #f2edf1; --soft: #b9aeb7;
    --line: #3a323b; --accent: #f29bc4; --on-accent: #35102a; --tint: #3b2433; --wrong: #ff9d8f; --right: #85d6a9;
  }
}
`;

export const style = `${colors}
*, ::before, ::after { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100% }
body {
  margin: 0; min-height: 100vh; display: flex; flex-direction: column; background: var(--back); color: var(--text);
  font: 1rem/1.55 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif;
}
bdi, [dir=auto] { unicode-bidi: isolate }
h1, h2, p, ul, pre, dl, dd { margin: 0; padding: 0 }
h1 { font-size: clamp(1.75rem, 1.2rem + 2.4vw, 2.5rem); line-height: 1.15; letter-spacing: -.02em; overflow-wrap: anywhere }
h2 { font-size: 1.25rem; line-height: 1.3; overflow-wrap: anywhere }
h2 code { font-size: 1.125rem }
ul { list-style: none }
a { color: var(--accent); text-underline-offset: .2em; text-decoration-thickness: .08em }
a:hover { text-decoration-thickness: .16em }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: .25rem }
code, pre { font: .875rem/1.6 ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; overflow-wrap: anywhere }
label, .soft, .lead, .description, .username, .facts, .empty, .bottom { color: var(--soft) }
.icon { width: 1em; height: 1em; flex: none; fill: none; stroke: currentcolor; stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; vertical-align: -.125em }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.skip { position: absolute; left: 1rem; top: -4rem; z-index: 2; padding: .5rem 1rem; background: var(--accent); color: var(--on-accent) }
.skip:focus { top: .5rem }

.top { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0 2rem; padding: .5rem clamp(1rem, 4vw, 3rem); background: var(--surface); border-bottom: 1px solid var(--line) }
.top ul { display: flex; flex-wrap: wrap; margin: 0 -.625rem }
.top nav a { display: block; padding: .5rem .625rem; color: var(--text); text-decoration: none }
.top nav a[aria-current] { color: var(--accent); text-decoration: underline }
.brand { display: flex; align-items: center; gap: .5rem; padding: .375rem 0; font-weight: 700; color: var(--text); text-decoration: none }
.brand .icon { width: 1.75rem; height: 1.75rem; color: var(--accent) }
main { flex: 1; width: 100%; max-width: 84rem; margin: 0 auto; padding: clamp(1rem, 3vw, 2.5rem) clamp(1rem, 4vw, 3rem) }
main > section, main > search { display: block; margin-top: 1.5rem }
.bottom { padding: 1.25rem clamp(1rem, 4vw, 3rem); border-top: 1px solid var(--line); font-size: .875rem }

.lead { max-width: 48rem; margin-top: .5rem; font-size: 1.125rem }
.right { color: var(--right) }
.wrong { color: var(--wrong) }
.problem { display: grid; gap: .5rem; margin-top: .75rem; font-size: 1.125rem; overflow-wrap: anywhere }
.problem p { max-height: 20rem; overflow: hidden }
.request { padding: .25rem .625rem; background: var(--sunk); border-radius: .5rem; max-height: 8rem; overflow: hidden }
.bar, .menu, .pagination { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem }
.bar { margin: 1.25rem 0 }
main > .bar:first-child { margin-top: 0 }
.bar nav { margin-inline-start: auto }
.count { font-weight: 600 }
.pagination { gap: .375rem }
.grid + .menu { margin-top: 2rem; justify-content: center }
.menu input[type=search] { flex: 1 1 9rem; min-width: 0; max-width: 32rem }
.menu input[type=number] { width: 6rem }
.menu select { flex: 0 1 14rem; min-width: 0 }
.filters { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 11rem), 1fr)); gap: .5rem 1rem; padding: .5rem 0 }
.filters > div { display: grid; gap: .25rem }
.filters :is(input, select) { width: 100%; min-width: 0 }
input, select, button, .button, .step { font: inherit; min-height: 2.5rem; max-width: 100%; padding: .375rem .875rem; border: 1px solid var(--soft); border-radius: .625rem; background: var(--surface); color: var(--text) }
[aria-invalid] { border: 2px solid var(--wrong) }
button { cursor: pointer }
.step, .button { display: inline-flex; align-items: center; text-decoration: none; border-color: var(--line) }
a.step { color: var(--accent) }
span.step { color: var(--soft); background: transparent; border-style: dashed }
button:hover, a.step:hover, .top nav a:hover { background: var(--sunk) }
.button { padding: .5rem 1.25rem; background: var(--accent); color: var(--on-accent); font-weight: 600 }
.button + .button { background: transparent; color: var(--accent) }

.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15.5rem), 1fr)); gap: 1.5rem }
.grid > li { display: grid; min-width: 0 }
.card { position: relative; display: flex; flex-direction: column; min-width: 0; background: var(--surface); border: 1px solid var(--line); border-radius: 1rem; overflow: hidden; scroll-margin-top: 1rem }
.card:target { outline: 3px solid var(--accent) }
.picture { position: relative; aspect-ratio: 4 / 5; background: var(--tint); overflow: hidden; display: grid; place-items: center }
.picture > .hanger { width: 30%; height: 30%; color: var(--accent); opacity: .35; stroke-width: 1 }
.picture > .color, .picture > a, .picture :is(img, video) { position: absolute; inset: 0; width: 100%; height: 100%; display: block }
.picture :is(img, video), .avatar img { object-fit: cover }
/* Drawn by browsers on a picture that they cannot load, over their own sign for that. */
.picture img::after, .avatar img::after { content: ''; position: absolute; inset: 0; background: var(--tint) url('${favicon}') center / 40% no-repeat }
.picture a:focus-visible { outline-offset: -4px }
.marks { position: absolute; top: .75rem; inset-inline: .75rem; display: flex; flex-wrap: wrap; gap: .375rem }
.mark { display: inline-flex; align-items: center; gap: .3rem; padding: .125rem .625rem; border-radius: 1rem; background: var(--surface); font-size: .8125rem; font-weight: 600; text-decoration: none }
.about { display: flex; flex-direction: column; gap: .625rem; flex: 1; padding: clamp(.75rem, 2vw, 1rem); min-width: 0 }
.about h2 { font-size: 1.0625rem; max-height: 2.6em }
.about h2 a { color: inherit; text-decoration: none }
.about h2 a::after { content: ''; position: absolute; inset: 0 }
.card:hover h2 a, .names:hover { text-decoration: underline }
.card .owner a, a.mark { position: relative; z-index: 1 }
.about h2, .description { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; line-clamp: 2; overflow: hidden; overflow-wrap: anywhere }
.description { font-size: .9375rem; max-height: 3.1em }
.owner { display: flex; align-items: center; gap: .625rem; margin-top: auto; min-width: 0 }
.avatar { position: relative; flex: none; width: 2.25rem; height: 2.25rem; border-radius: 50%; overflow: hidden; display: grid; place-items: center; background: var(--tint); color: var(--accent); font-weight: 600 }
.avatar img { position: absolute; inset: 0; width: 100%; height: 100% }
.names { display: grid; min-width: 0; line-height: 1.3; color: inherit; text-decoration: none }
.name, .username { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.username, .facts { font-size: .875rem }
.facts { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .125rem .75rem; padding-top: .625rem; border-top: 1px solid var(--line) }
.outfit { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: clamp(1rem, 4vw, 3rem); align-items: start }
.outfit > div { min-width: 0 }
.outfit > div:not(.card) { display: grid; gap: 1.25rem }
.outfit .card { max-width: 36rem }
.text, .fields dd { white-space: pre-line; overflow-wrap: anywhere }
.empty { padding: 3rem 1rem; text-align: center; border: 1px dashed var(--line); border-radius: 1rem }
.strip { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22%, 8rem), 1fr)); gap: .75rem; margin-top: 1rem }
.strip .picture { border-radius: .875rem; border: 1px solid var(--line) }

.panel { padding: clamp(1rem, 3vw, 1.5rem); background: var(--surface); border: 1px solid var(--line); border-radius: 1rem }
.panel { display: grid; grid-template-columns: minmax(0, 1fr); gap: .75rem }
.panel p { max-width: 48rem }
.code { padding: .875rem 1rem; background: var(--sunk); border-radius: .625rem; white-space: pre-wrap; overflow: hidden }
.fields > div { display: grid; grid-template-columns: minmax(0, 16rem) minmax(0, 1fr); gap: .25rem 1rem; padding: .375rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere }
summary { cursor: pointer; font-weight: 600; padding: .375rem 0; width: fit-content }

@media (max-width: 40rem) {
  .grid { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .75rem }
  .fields > div { grid-template-columns: minmax(0, 1fr) }
  .top nav a { padding: .375rem .5rem }
  .top ul { margin: 0 -.5rem }
  .step { padding: .375rem .625rem }
  .menu select { flex: 1 }
}
@media print { .top nav, form, .pagination { display: none } }
`;
