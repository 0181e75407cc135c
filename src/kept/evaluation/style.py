"""The style sheet of the report's page."""

STYLE = """
:root { color-scheme: light dark;
  --ink: #1c2430; --paper: #ffffff; --soft: #5a6676; --rule: #d9dfe7;
  --panel: #f6f8fa; --one: #1d5fd1; --two: #b4560a; --faint: #9aa5b3;
  --good: #14713d; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6eaf0; --paper: #12161c; --soft: #a2adbb; --rule: #2f3843;
  --panel: #1a2029; --one: #79a9ff; --two: #f0a35e; --faint: #66727f;
  --good: #6fd39b; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; padding-top: 1rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p { margin: .5rem 0; max-width: 46rem; }
a { color: var(--one); }
.note { color: var(--two); }
.verdict { display: inline-block; padding: .2rem .7rem; border-radius: 1rem;
  border: 1px solid currentColor; font-weight: 600; }
.passed { color: var(--good); } .failed { color: var(--bad); }
.wide { overflow-x: auto; margin: .75rem 0 1.25rem; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; padding: .35rem 1.1rem .35rem 0; vertical-align: top;
  border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; padding: 1rem; background: var(--panel);
  border-radius: .5rem; max-width: 46rem; }
figcaption { color: var(--soft); font-size: .88rem; margin-top: .5rem; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--soft); }
pre { background: var(--panel); padding: 1rem; border-radius: .5rem;
  overflow-x: auto; font-size: .85rem; }
.plot { display: block; width: 100%; height: auto;
  font: 13px system-ui, sans-serif; }
.plot text { fill: var(--soft); } .plot .legend, .plot .label { fill: var(--ink); }
.plot .grid { stroke: var(--rule); stroke-width: 1; }
.plot .line { fill: none; stroke-width: 2.2; }
.plot .line.one { stroke: var(--one); }
.plot .line.two { stroke: var(--two); stroke-dasharray: 7 4; }
.plot .line.faint { stroke: var(--faint); stroke-dasharray: 2 4; }
.plot .bar.one, .plot .dot.one { fill: var(--one); }
.plot .bar.two, .plot .dot.two { fill: var(--two); }
.plot .bar.faint, .plot .dot.faint { fill: var(--faint); }
.plot .bar.faint { opacity: .45; } .plot .dot { opacity: .75; }
@media print { details > * { display: block; } }
"""
