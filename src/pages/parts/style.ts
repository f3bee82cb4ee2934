// The stylesheet, inlined into each page: no path that a proxy must route. It avoids double quotes, `<` and `&`, so that
// escaping does not change it.
import { favicon } from './pictures.tsx';

export const style = `
:root {
  color-scheme: light dark;
  --back: #faf7f5; --surface: #ffffff; --sunk: #f3edea; --text: #241f24; --soft: #675e66;
  --line: #e5dcd9; --accent: #a83a70; --on-accent: #ffffff; --tint: #f7e6ee; --wrong: #a32a1c;
  --right: #1f6b45; --shadow: 0 1px 2px rgb(60 30 45 / .06), 0 6px 20px rgb(60 30 45 / .06);
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #171418; --surface: #211c22; --sunk: #2b252c; --text: #f2edf1; --soft: #b9aeb7;
    --line: #3a323b; --accent: #f29bc4; --on-accent: #35102a; --tint: #3b2433; --wrong: #ff9d8f;
    --right: #85d6a9; --shadow: 0 1px 2px rgb(0 0 0 / .4);
  }
}
*, ::before, ::after { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100% }
body {
  margin: 0; min-height: 100vh; display: flex; flex-direction: column;
  background: var(--back); color: var(--text);
  font: 1rem/1.55 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif;
}
bdi, [dir=auto] { unicode-bidi: isolate }
h1, h2, p, ul, pre { margin: 0; padding: 0 }
h1 { font-size: clamp(1.75rem, 1.2rem + 2.4vw, 2.5rem); line-height: 1.15; letter-spacing: -.02em; overflow-wrap: anywhere }
h2 { font-size: 1.25rem; line-height: 1.3; letter-spacing: -.01em }
ul { list-style: none }
a { color: var(--accent); text-underline-offset: .2em; text-decoration-thickness: .08em }
a:hover { text-decoration-thickness: .16em }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: .25rem }
code, pre { font: .875rem/1.6 ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace }
code { overflow-wrap: anywhere }
.icon { width: 1em; height: 1em; flex: none; fill: none; stroke: currentcolor; stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; vertical-align: -.125em }
.soft { color: var(--soft) }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.skip { position: absolute; left: 1rem; top: -4rem; z-index: 2; padding: .5rem 1rem; background: var(--accent); color: var(--on-accent) }
.skip:focus { top: .5rem }

.top { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .25rem 2rem; padding: .75rem clamp(1rem, 4vw, 3rem); background: var(--surface); border-bottom: 1px solid var(--line) }
.top ul { display: flex; flex-wrap: wrap; margin: 0 -.625rem }
.top nav a { display: block; padding: .5rem .625rem; color: var(--text); text-decoration: none; border-radius: .5rem }
.top nav a:hover { background: var(--sunk) }
.top nav a[aria-current] { color: var(--accent); font-weight: 600 }
.brand { display: flex; align-items: center; gap: .5rem; padding: .375rem 0; font-weight: 700; color: var(--text); text-decoration: none }
.brand .icon { width: 1.75rem; height: 1.75rem; color: var(--accent) }
main { flex: 1; width: 100%; max-width: 84rem; margin: 0 auto; padding: clamp(1.5rem, 4vw, 3rem) clamp(1rem, 4vw, 3rem) }
.bottom { padding: 1.25rem clamp(1rem, 4vw, 3rem); border-top: 1px solid var(--line); color: var(--soft); font-size: .875rem }

.lead { max-width: 44rem; margin-top: .5rem; font-size: 1.125rem; color: var(--soft) }
.request { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem .75rem; margin-top: 1rem }
.request code { padding: .25rem .625rem; background: var(--sunk); border-radius: .5rem; max-height: 8rem; overflow: hidden }
.status { font-weight: 600; color: var(--right) }
.status.wrong { color: var(--wrong) }
.problem { margin-top: .75rem; font-size: 1.125rem; overflow-wrap: anywhere }
.problem p + p { margin-top: .5rem }
.problem p { max-height: 20rem; overflow: hidden }

.bar { display: flex; flex-wrap: wrap; align-items: center; gap: .75rem 1.5rem; margin: 1.75rem 0 1.25rem }
.count { font-weight: 600 }
.menu { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem }
main > .menu { margin-top: 1.5rem; justify-content: center }
.search { display: block; margin-top: 1.5rem }
.menu input[type=search] { flex: 1 1 12rem; min-width: 0; max-width: 32rem }
.menu input[type=number] { width: 7rem }
.filters { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 13rem), 1fr)); gap: .5rem 1rem; padding: .5rem 0 }
.filters > div { display: grid; gap: .25rem }
.filters label { color: var(--soft) }
.filters :is(input, select) { width: 100%; max-width: none }
.menu label { color: var(--soft) }
input, select, button, .button, .step { font: inherit; min-height: 2.5rem; max-width: 100%; padding: .375rem .875rem; border: 1px solid var(--line); border-radius: .625rem; background: var(--surface); color: var(--text) }
input, select, button { border-color: var(--soft) }
select { max-width: min(14rem, 100%) }
button { cursor: pointer }
button:hover, a.step:hover { background: var(--sunk) }
.button { display: inline-flex; align-items: center; min-height: 2.75rem; padding: .5rem 1.25rem; background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; text-decoration: none }
.button:hover { filter: brightness(1.08) }
.button.plain { background: transparent; color: var(--accent) }
.pagination { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem }
.bar .pagination { margin-inline-start: auto }
.grid + .pagination { margin-top: 2rem; justify-content: center }
.pagination p { color: var(--soft); font-variant-numeric: tabular-nums }
.pagination ul { display: flex; flex-wrap: wrap; gap: .375rem }
.step { display: inline-flex; align-items: center; text-decoration: none }
a.step { color: var(--accent); border-color: var(--line) }
span.step { color: var(--soft); background: transparent; border-style: dashed }

.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15.5rem), 1fr)); gap: 1.5rem }
.grid > li { display: grid; min-width: 0 }
.card { position: relative; display: flex; flex-direction: column; min-width: 0; background: var(--surface); border: 1px solid var(--line); border-radius: 1rem; overflow: hidden; box-shadow: var(--shadow); scroll-margin-top: 1rem }
.card:target { outline: 3px solid var(--accent) }
.picture { position: relative; aspect-ratio: 4 / 5; background: var(--tint); overflow: hidden; display: grid; place-items: center }
.picture > .hanger { width: 30%; height: 30%; color: var(--accent); opacity: .35; stroke-width: 1 }
.picture > .color, .picture > a, .picture img { position: absolute; inset: 0; width: 100%; height: 100%; display: block }
.picture img { object-fit: cover }
/* Drawn by browsers on a picture that they cannot load, over their own sign for that. */
.picture img::after { content: ''; position: absolute; inset: 0; background: var(--tint) url('${favicon}') center / 30% no-repeat }
.picture a:focus-visible { outline-offset: -4px }
.marks { position: absolute; top: .75rem; inset-inline-start: .75rem; display: flex; gap: .375rem }
.mark { display: inline-flex; align-items: center; gap: .3rem; padding: .125rem .625rem; border-radius: 1rem; background: var(--surface); color: var(--text); font-size: .8125rem; font-weight: 600; text-decoration: none; box-shadow: var(--shadow) }
a.mark { color: var(--accent) }
.about { display: flex; flex-direction: column; gap: .625rem; flex: 1; padding: 1rem; min-width: 0 }
.about h2 { font-size: 1.0625rem }
.about h2 a { color: inherit; text-decoration: none }
.about h2 a::after { content: ''; position: absolute; inset: 0 }
.card:hover h2 a { text-decoration: underline }
.card .owner a, a.mark { position: relative; z-index: 1 }
.about h2, .description { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; line-clamp: 2; overflow: hidden; overflow-wrap: anywhere }
.about h2 { max-height: 2.6em }
.description { color: var(--soft); font-size: .9375rem; max-height: 3.1em }
.owner { display: flex; align-items: center; gap: .625rem; margin-top: auto; min-width: 0 }
.avatar { position: relative; flex: none; width: 2.25rem; height: 2.25rem; border-radius: 50%; overflow: hidden; display: grid; place-items: center; background: var(--tint); color: var(--accent); font-weight: 600 }
.avatar img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: cover }
.avatar img::after { content: ''; position: absolute; inset: 0; background: var(--tint) url('${favicon}') center / 60% no-repeat }
.names { display: grid; min-width: 0; line-height: 1.3; color: inherit; text-decoration: none }
.names:hover { text-decoration: underline }
.name, .username { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.username { color: var(--soft); font-size: .875rem }
.facts { display: flex; justify-content: space-between; gap: 1rem; padding-top: .625rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .875rem; font-variant-numeric: tabular-nums }
.likes .icon { color: var(--accent) }

.outfit { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: clamp(1rem, 4vw, 3rem); align-items: start }
.outfit > div { min-width: 0 }
.outfit > div:not(.card) { display: grid; gap: 1.25rem }
.outfit .card { max-width: 36rem }
.text { white-space: pre-line; overflow-wrap: anywhere }
.profile { gap: 1rem }
.profile .avatar { width: 4.5rem; height: 4.5rem; font-size: 1.75rem }
.profile > div { min-width: 0 }
.empty { padding: 3rem 1rem; text-align: center; color: var(--soft); border: 1px dashed var(--line); border-radius: 1rem }

.panels { display: grid; align-items: start; gap: 1.5rem; margin-top: 2.5rem }
.panels > div { display: grid; gap: 1.5rem; min-width: 0 }
.panel { padding: clamp(1rem, 3vw, 1.75rem); background: var(--surface); border: 1px solid var(--line); border-radius: 1rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; min-width: 0 }
.panel p { max-width: 48rem }
.code { padding: .875rem 1rem; background: var(--sunk); border-radius: .625rem; white-space: pre-wrap; overflow: hidden; overflow-wrap: anywhere; min-width: 0 }
summary { cursor: pointer; font-weight: 600; padding: .375rem 0; width: fit-content }
details > .code { margin-top: .5rem }

.hero { padding: clamp(0rem, 2vw, 1.5rem) 0 0 }
.hero h1 { font-size: clamp(2.25rem, 1.5rem + 3.6vw, 3.75rem) }
.total { margin-top: 1.25rem }
.total strong { font-size: 1.5rem; color: var(--accent); font-variant-numeric: tabular-nums }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.5rem }
main > section { margin-top: 2.5rem }
main > section > ul { margin-top: 1rem }
.strip { display: grid; grid-template-columns: repeat(8, minmax(0, 1fr)); gap: 1rem }
.strip .picture { border-radius: .875rem; border: 1px solid var(--line) }
.links { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr)); gap: 1rem }
.links li { padding: 1rem 1.125rem; background: var(--surface); border: 1px solid var(--line); border-radius: 1rem }
.links a { font-weight: 600 }
.links code { color: var(--soft) }
.links p { margin-top: .25rem; color: var(--soft) }

@media (min-width: 64rem) {
  .panels { grid-template-columns: repeat(2, minmax(0, 1fr)) }
}
@media (max-width: 60rem) { .strip { grid-template-columns: repeat(4, minmax(0, 1fr)) } }
@media (max-width: 40rem) {
  .grid { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .75rem }
  .about { padding: .75rem }
  .bar .pagination { margin-inline-start: 0 }
  .menu select { flex: 1 1 11rem; min-width: 0 }
  .facts { flex-wrap: wrap; gap: .125rem .75rem }
  .marks { top: .5rem; inset-inline: .5rem; flex-wrap: wrap }
  .strip { gap: .5rem }
}
@media print { .top nav, .menu, .pagination { display: none } }
`;
