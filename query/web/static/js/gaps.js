// Gaps: each loss with its cause, what it put in doubt, and what resolved it.
import { all, ask } from './api.js';
import { causes } from './causes.js';
import { h, replace, s, table } from './dom.js';
import * as link from './link.js';
import { doubt, lost, lostOf, missing, place, shownAt, within } from './losses.js';
import { answering, bytes, cause, choice, coded, empty, panel, say } from './parts.js';
import { base64Of, clock, day, iso, moment, number, span, words } from './text.js';
import { list } from './virtual.js';

export const title = 'Gaps';

export async function show({ root, q, signal, keys }) {
  const tools = h('div', { class: 'filters' });
  const sums = h('div', { class: 'sums' });
  const left = h('div', { class: 'list' });
  const right = h('aside', { class: 'detail', 'aria-label': 'The loss' });
  root.append(h('header', { class: 'head' }, h('h1', null, 'Gaps'), tools), sums, h('div', { class: 'split' }, left, right));

  const lines = [];
  const ok = await answering(left, signal, (progress) => ask('gaps', { source: q.get('source'), from: q.get('from'), to: q.get('to'), no_objects: true }, (g) => lines.push(g), { signal, progress }), 'Looking for losses');
  if (!ok) return undefined;
  lines.sort((a, b) => b.first_offset_after - a.first_offset_after);
  const values = () => Object.fromEntries(q);
  const set = (name, v) => link.go('gaps', { ...values(), gap: undefined, [name]: v });
  const sources = [...new Set(lines.map((g) => g.source))];
  const known = [...new Set(lines.map((g) => g.cause))];
  replace(tools,
    choice('Cause', 'cause', q.get('cause'), [['', 'any'], ...known.map((c) => [c, words(c)])], (v) => set('cause', v)),
    (sources.length > 1 || q.has('source')) && choice('Source', 'source', q.get('source'), [['', 'all'], ...sources.map((x) => [x, x])], (v) => set('source', v)),
    q.has('from') && h('button', { type: 'button', onclick: () => link.go('gaps', { ...values(), from: undefined, to: undefined }) }, 'All times'));
  const wanted = q.get('cause') ? lines.filter((g) => g.cause === q.get('cause')) : lines;
  replace(sums, summary(lines, q));
  if (wanted.length === 0) {
    replace(left, empty(lines.length ? 'No loss has this cause.' : 'No loss was seen.'));
    right.remove();
    return undefined;
  }

  const select = (i, replaced) => link.go('gaps', { ...values(), gap: place(wanted[i]) }, replaced);
  const rows = list({
    label: 'Losses, the newest first',
    head: h('div', { role: 'row', class: 'gap-row' }, ['Shown at (UTC)', 'Within', 'Cause', 'Missing seq', 'Lost events', 'Resolved'].map((t) => h('span', { role: 'columnheader' }, t))),
    row: (i) => row(wanted[i], i === 0 || day(shownAt(wanted[i])) !== day(shownAt(wanted[i - 1]))),
    open: (i) => select(i),
  });
  replace(left, rows.node);
  rows.grown(wanted.length);
  Object.assign(keys, rows.keys, {
    j: ['next loss', () => select(Math.min(wanted.length - 1, rows.current + 1), true)],
    k: ['loss before', () => select(Math.max(0, rows.current - 1), true)],
  });
  signal.addEventListener('abort', rows.stop);

  let abort = new AbortController();
  signal.addEventListener('abort', () => abort.abort());
  const choose = (to) => {
    const i = wanted.findIndex((g) => place(g) === to.get('gap'));
    abort.abort();
    abort = new AbortController();
    if (i < 0 && to.has('gap')) {
      replace(right, empty('That loss is not among these.'));
      return;
    }
    rows.choose(Math.max(0, i));
    const g = wanted[Math.max(0, i)];
    if (i >= 0) say(`${words(g.cause)} at ${moment(shownAt(g))}`);
    detail(right, g, abort.signal);
    if (to !== q && matchMedia('(max-width: 800px)').matches) right.scrollIntoView({ block: 'start' });
  };
  choose(q);
  return {
    update: (to) => {
      for (const name of ['source', 'cause', 'from', 'to']) if (to.get(name) !== q.get(name)) return false;
      choose(to);
      return true;
    },
  };
}

function row(g, first) {
  const cell = (c, ...x) => h('span', { role: 'cell', class: c }, x);
  return h('div', { class: 'gap-row', id: `gap-${g.first_offset_after}` },
    cell('when', first && h('small', null, day(shownAt(g)), ' '), clock(shownAt(g))), cell('within', within(g)), cell('what', cause(g.cause)), cell('seq', missing(g)), cell('gone', h('small', { class: 'narrow' }, 'events lost: '), lost(g)),
    cell('by', g.resolved_by ? 'by a reading' : 'no'));
}

// summary counts losses by cause; each is a link that selects them.
function summary(lines, q) {
  const by = new Map();
  for (const g of lines) {
    if (!by.has(g.cause)) by.set(g.cause, []);
    by.get(g.cause).push(g);
  }
  return h('ul', { class: 'chips' }, [...by].sort((a, b) => b[1].length - a[1].length).map(([name, of]) => h('li', null, h('a', {
    href: link.href('gaps', { ...Object.fromEntries(q), gap: undefined, cause: q.get('cause') === name ? undefined : name }), 'aria-current': q.get('cause') === name ? 'true' : null,
  }, h('strong', null, number(of.length)), ' ', words(name), lostOf(of) && h('small', null, ` ${lostOf(of)}`)))));
}

function detail(node, g, signal) {
  const [what, todo] = causes[g.cause] ?? ['', ''];
  const blast = panel('Put in doubt');
  const at = shownAt(g);
  const a = Date.parse(g.time_before ?? at);
  const b = Date.parse(at);
  const margin = Math.max(1000, 3 * (b - a));
  const behind = `offset:${g.first_offset_after}`;
  const facts = [
    ['Shown at', `${moment(at)}, offset ${number(g.first_offset_after)}`],
    g.time_before && ['Not before', `${moment(g.time_before)}, offset ${number(g.last_offset_before)}`],
    ['Source', bytes(base64Of(g.source), 60)],
    ['Epoch', number(g.epoch)],
    ['Missing seq', `${missing(g)}${g.missing_seqs !== undefined ? `: ${number(g.missing_seqs)}` : ''}`],
    ['Lost events', lost(g)],
    g.damage && ['Damage', g.damage],
  ].filter(Boolean);
  replace(node, h('h2', null, words(g.cause)), h('p', { class: 'lead' }, coded(`${what[0].toUpperCase()}${what.slice(1)}.`)),
    h('dl', { class: 'facts' }, facts.map(([k, v]) => [h('dt', null, k), h('dd', null, v)])),
    g.attribution && h('div', { class: 'said' }, h('h3', null, 'What the master\'s counters say'), h('p', null, coded(g.attribution.text))),
    h('div', { class: 'said' }, h('h3', null, 'What to do'), h('p', null, coded(`${todo[0].toUpperCase()}${todo.slice(1)}.`))),
    h('div', { class: 'said' }, h('h3', null, 'Resolved'), resolved(g)),
    blast.node,
    h('p', { class: 'links' },
      h('a', { href: link.href('timeline', { from: iso(a - margin), to: iso(b + margin) }) }, 'Timeline around it'),
      h('a', { href: link.href('objects', { source: g.source, certainty: 'uncertain', at: behind }) }, 'Objects in doubt behind it')));
  answering(blast.body, signal, async (progress) => {
    const lines = await all('gaps', { source: g.source, from: behind, to: behind }, { signal, progress });
    const mine = lines.find((x) => place(x) === place(g));
    if (!mine?.in_doubt) replace(blast.body, empty('This is not known: it was pruned.'));
    else replace(blast.body, radius(mine, behind));
  }, 'Counting objects');
}

function resolved(g) {
  const r = g.resolved_by;
  if (!r) return h('p', null, 'By no reading of the master. Each object is sure again with its next event.');
  const names = (r.tenants_base64 ?? []).slice(0, 5);
  return h('p', null, `The master was read by ${moment(r.time)} (${words(r.why)}, offset ${number(r.offset)}, ${span(r.took_ms)}), with ${number(r.corrections)} corrections. `,
    names.length ? ['It covered the tenant ', names.map((t, i) => [i > 0 && ', ', bytes(t, 30)]), r.tenants_total > names.length && ` and ${number(r.tenants_total - names.length)} more`, '; objects of others stay in doubt until their next event.'] : 'No tenant was covered.');
}

// radius shows the objects that a loss put in doubt, scope by scope.
function radius(g, behind) {
  const d = g.in_doubt;
  if (d.objects + d.already_in_doubt === 0) return empty('Nothing that was known to be present.');
  const most = Math.max(...d.scopes.map((x) => x.objects), 1);
  const backends = new Set(d.scopes.map((x) => x.backend_id_base64)).size > 1;
  return [
    h('p', null, h('strong', null, doubt(g)), ' objects that were present. ', d.already_in_doubt > 0 && `${number(d.already_in_doubt)} were in doubt already.`),
    d.scopes.length > 0 && h('div', { class: 'scroll' }, table(['Tenant', ...(backends ? ['Backend'] : []), { text: 'Objects', num: true }, ''], d.scopes.slice(0, 20).map((x) => [
      h('a', { href: link.href('objects', { ...link.nameValues({ source: g.source, ...x }), certainty: 'uncertain', at: behind }) }, bytes(x.tenant_id_base64, 28)), ...(backends ? [bytes(x.backend_id_base64, 24)] : []), number(x.objects),
      s('svg', { class: 'bar-line', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, s('rect', { class: 'present uncertain', width: (100 * x.objects) / most, height: 8 })),
    ]))),
    d.scopes_total > 20 && h('p', { class: 'note' }, `and ${number(d.scopes_total - 20)} scopes more`),
  ];
}
