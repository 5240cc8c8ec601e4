// The picture of the timeline: bars by type, or a row of bars for each tenant; above them losses, restarts and readings.
import { nice, scale, sized, timeAxis } from './chart.js';
import { breaks } from './causes.js';
import { asTable, h, replace, s, table } from './dom.js';
import * as link from './link.js';
import { isLoss, lost, lostOf, missing, place, shownAt } from './losses.js';
import { labelFrom, merged } from './marks.js';
import { bytes, legend } from './parts.js';
import { bytes64, clock, iso, moment, number, roughly, words } from './text.js';

const left = 8;
const right = 48; // for the numbers
const marks = 38; // height of what stands above the bars
const mostTenants = 8;

// plot draws buckets into a node. zoom(from, to) is called when a span was dragged, move(ms) when a moment was chosen.
export function plot(node, { buckets, byTenant, signal, zoom, move }) {
  const a = Date.parse(buckets[0].begin);
  const b = Date.parse(buckets.at(-1).end);
  const holder = h('div', { class: 'chart timeline' });
  const about = h('p', { class: 'about', 'aria-hidden': 'true' });
  let gaps = [];
  let facts = [];
  let at = null;
  let x = null;

  const draw = sized(holder, signal, (width) => {
    x = scale(a, b, left, width - right);
    replace(holder, picture(width));
    place_();
  });

  function picture(width) {
    const rows = byTenant ? tenantRows(buckets, x, width) : typeBars(buckets, x, width);
    const bottom = marks + rows.height;
    const svg = s('svg', { width, height: bottom + 24, class: 'plot', role: 'img', 'aria-label': `Events from ${moment(iso(a))} to ${moment(iso(b))}; below as a table` });
    svg.append(lossWindows(gaps, x, a, b, bottom), s('g', { transform: `translate(0 ${marks})` }, rows.node), timeAxis(x, a, b, bottom, width - right),
      s('rect', { class: 'drag', y: 0, height: bottom, x: 0, width: 0 }), s('g', { class: 'cursor', display: 'none' }, s('line', { y1: 0, y2: bottom }), s('path', { d: `M-5 ${bottom + 1}h10l-5 -6Z` })),
      readings(facts, gaps, x, a, b), lossSigns(gaps, x, a, b, bottom));
    return svg;
  }

  function place_() {
    const c = holder.querySelector('.cursor');
    if (!c) return;
    const seen = at !== null && at >= a && at <= b;
    c.setAttribute('display', seen ? 'inline' : 'none');
    if (seen) c.setAttribute('transform', `translate(${x(at)} 0)`);
    tell(at);
  }

  // tell says what a moment's bucket holds.
  function tell(ms) {
    const k = ms === null ? undefined : buckets.find((y) => ms >= Date.parse(y.begin) && ms < Date.parse(y.end));
    if (!k) {
      about.textContent = 'Drag to zoom, click to choose a moment. Keys: ? shows them.';
      return;
    }
    about.textContent = `${clock(k.begin)} to ${clock(k.end)}: ${number(k.by_type.stored)} stored, ${number(k.by_type.removed)} removed, ${number(k.by_type.cleared)} cleared`
      + k.gaps.map((g) => ` · ${g.count > 1 ? `${g.count} × ` : ''}${words(g.cause)}${g.lost_events_max !== undefined ? ` (${lost(g)} events lost)` : ''}`).join('');
  }

  // Dragging is watched where the picture is held: the picture may be drawn anew meanwhile.
  let from = null;
  const inside = (e) => Math.max(x(a), Math.min(x(b), e.clientX - holder.getBoundingClientRect().left));
  const select = (p, width) => {
    holder.querySelector('.drag').setAttribute('x', p);
    holder.querySelector('.drag').setAttribute('width', width);
  };
  holder.addEventListener('pointerdown', (e) => {
    if (e.button !== 0 || e.target.closest('a') || !x) return;
    from = inside(e);
    holder.setPointerCapture(e.pointerId);
  });
  holder.addEventListener('pointermove', (e) => {
    if (!x) return;
    const p = inside(e);
    tell(x.back(p));
    if (from !== null) select(Math.min(from, p), Math.abs(p - from));
  });
  holder.addEventListener('pointerup', (e) => {
    if (from === null) return;
    const [p, begun] = [inside(e), from];
    from = null;
    select(0, 0);
    if (Math.abs(p - begun) > 5) zoom(x.back(Math.min(begun, p)), x.back(Math.max(begun, p)));
    else move(x.back(p));
  });
  holder.addEventListener('pointercancel', () => {
    from = null;
    select(0, 0);
  });
  holder.addEventListener('pointerleave', () => from === null && tell(at));

  const bar = (c) => s('rect', { x: 1, y: 1, width: 10, height: 10, class: c });
  replace(node, holder, about,
    legend(...(byTenant ? [[bar('stored'), 'events of a tenant']] : [[bar('stored'), 'stored'], [bar('removed'), 'removed'], [bar('cleared'), 'cleared']]),
      [lossPath(6, 3), 'loss'], [breakPath(6, 6), 'restart or break'], [s('circle', { class: 'reading', cx: 6, cy: 6, r: 3 }), 'reading of the master'], [s('rect', { class: 'window', width: 12, height: 12 }), 'when it was lost']),
    asTable(() => bucketTable(buckets)));
  draw();
  return {
    losses: (lines) => {
      gaps = lines;
      draw();
    },
    facts: (lines) => {
      facts = lines;
      draw();
    },
    cursor: (ms) => {
      at = ms;
      place_();
    },
  };
}

// typeBars stacks stored, removed and cleared.
export function typeBars(buckets, x, width, height = 190) {
  const top = nice(Math.max(1, ...buckets.map((k) => k.events)));
  const y = scale(0, top, height, 6);
  const g = s('g', null, axis(y, top, width));
  for (const k of buckets) {
    const [from, to] = edges(k, x);
    let under = 0;
    for (const type of ['stored', 'removed', 'cleared']) {
      const n = k.by_type[type];
      if (n === 0) continue;
      g.append(s('rect', { class: type, x: from, width: to - from, y: y(under + n), height: Math.max(0.5, y(under) - y(under + n)) }));
      under += n;
    }
  }
  return { node: g, height };
}

// tenantRows are a row of bars for each tenant, all of one scale.
function tenantRows(buckets, x, width) {
  const totals = new Map();
  for (const k of buckets) for (const t of k.by_tenant) totals.set(t.tenant_id_base64, (totals.get(t.tenant_id_base64) ?? 0) + t.events);
  const shown = [...totals].sort((p, q) => q[1] - p[1]).slice(0, mostTenants).map(([t]) => t);
  const rest = (k) => (k.other_tenants ?? 0) + k.by_tenant.filter((t) => !shown.includes(t.tenant_id_base64)).reduce((n, t) => n + t.events, 0);
  const rows = shown.map((t) => ({ name: bytes64(t, 24), of: (k) => k.by_tenant.find((v) => v.tenant_id_base64 === t)?.events ?? 0 }));
  if (buckets.some((k) => rest(k) > 0)) rows.push({ name: 'all others', of: rest });
  const tall = 46;
  const g = s('g');
  rows.forEach((r, i) => {
    const most = nice(Math.max(1, ...buckets.map(r.of)));
    const y = scale(0, most, tall - 6, 14);
    const row = s('g', { transform: `translate(0 ${i * tall})` }, axis(y, most, width, true));
    for (const k of buckets) {
      const n = r.of(k);
      const [from, to] = edges(k, x);
      if (n > 0) row.append(s('rect', { class: 'stored', x: from, width: to - from, y: y(n), height: Math.max(0.5, y(0) - y(n)) }));
    }
    row.append(s('text', { class: 'row-name', x: left, y: 11 }, r.name));
    g.append(row);
  });
  return { node: g, height: Math.max(tall, rows.length * tall) };
}

function edges(k, x) {
  const [from, to] = [x(Date.parse(k.begin)), x(Date.parse(k.end))];
  return [from, Math.max(from + 0.5, to - Math.min(1.5, (to - from) / 5))];
}

function axis(y, top, width, small) {
  const g = s('g', { class: 'axis' });
  for (const v of small ? [0, top] : [0, top / 2, top]) {
    g.append(s('line', { class: v ? 'faint' : null, x1: left, x2: width - right, y1: y(v), y2: y(v) }), s('text', { x: width - right + 6, y: y(v) + 4 }, roughly(v)));
  }
  return g;
}

const lossPath = (x, y) => s('path', { class: 'loss', d: `M${x - 5} ${y}h10l-5 8Z` });
const breakPath = (x, y) => s('path', { class: 'break', d: `M${x} ${y - 5}l5 5l-5 5l-5 -5Z` });
const within = (t, a, b) => t >= a && t <= b;

// lossWindows shade when each loss happened: between the messages around it.
function lossWindows(gaps, x, a, b, bottom) {
  return s('g', { class: 'windows' }, gaps.filter(isLoss).map((g) => {
    const to = Date.parse(shownAt(g));
    const from = Date.parse(g.time_before ?? shownAt(g));
    if (to < a || from > b || from > to) return null;
    const [p, r] = [x(Math.max(a, from)), x(Math.min(b, to))];
    return s('rect', { class: 'window', x: p, width: Math.max(1, r - p), y: marks - 8, height: bottom - marks + 8 });
  }));
}

// lossSigns are links to the losses; those that lie on each other are one.
function lossSigns(gaps, x, a, b, bottom) {
  const when = (g) => Date.parse(shownAt(g));
  return s('g', null, merged(gaps.filter((g) => within(when(g), a, b)), (g) => x(when(g))).map(({ p, of }) => {
    const broken = of.some((m) => breaks.has(m.cause));
    const missed = of.some(isLoss);
    const said = ofLosses(of);
    return s('a', { href: link.href('gaps', { gap: place(of[0]) }), class: 'loss-sign', 'aria-label': said },
      s('title', null, said), s('rect', { class: 'hit', x: p - 8, y: 14, width: 16, height: 20 }),
      broken && s('line', { class: 'break-line', x1: p, x2: p, y1: 22, y2: bottom }), broken && breakPath(p, 24), missed && lossPath(p, broken ? 12 : 20),
      of.length > 1 && s('text', { class: 'many', x: p + labelFrom, y: 32 }, String(of.length)));
  }));
}

// ofLosses is what a mark of losses says, in the order of time.
function ofLosses(of) {
  const [first, last] = [of[0], of.at(-1)];
  if (of.length === 1) return `${words(first.cause)}, ${moment(shownAt(first))}, seq ${missing(first)}, events lost: ${lost(first)}`;
  const sum = lostOf(of);
  return `${number(of.length)} losses from ${moment(shownAt(first))} to ${moment(shownAt(last))}: ${[...new Set(of.map((m) => words(m.cause)))].join(', ')}${sum && `; ${sum}`}`;
}

// readings are rings; connections and recorders that came or went are short lines.
function readings(facts, gaps, x, a, b) {
  const g = s('g');
  const rings = new Map(); // by offset
  for (const f of facts) {
    const t = Date.parse(f.received);
    if (f.type === 'reconciliation_ended') rings.set(f.offset, { t, corrections: f.content?.corrections ?? 0 });
    else if (within(t, a, b)) g.append(s('line', { class: 'fact-line', x1: x(t), x2: x(t), y1: 1, y2: 11 }, s('title', null, `${words(f.type)}, ${moment(f.received)}`)));
  }
  for (const { resolved_by: r } of gaps) if (r && !rings.has(r.offset)) rings.set(r.offset, { t: Date.parse(r.time), corrections: r.corrections });
  for (const { p, of } of merged([...rings.values()].filter((r) => within(r.t, a, b)), (r) => x(r.t), false)) {
    const corrections = of.reduce((n, r) => n + r.corrections, 0);
    g.append(s('circle', { class: 'reading', cx: p, cy: 6, r: 3 }, s('title', null, of.length === 1 ? `reading of the master, ${moment(iso(of[0].t))}: ${number(corrections)} corrections`
      : `${number(of.length)} readings of the master from ${moment(iso(of[0].t))} to ${moment(iso(of.at(-1).t))}: ${number(corrections)} corrections`)));
  }
  return g;
}

const bucketTable = (buckets) => table(['From (UTC)', { text: 'Stored', num: true }, { text: 'Removed', num: true }, { text: 'Cleared', num: true }, 'Busiest tenants', 'Lost'], buckets.map((k) => [
  moment(k.begin), number(k.by_type.stored), number(k.by_type.removed), number(k.by_type.cleared),
  k.by_tenant.filter((t) => t.events > 0).slice(0, 3).map((t, i) => [i > 0 && ', ', bytes(t.tenant_id_base64, 20), ` ${number(t.events)}`]), k.gaps.map((g) => words(g.cause)).join(', '),
]));
