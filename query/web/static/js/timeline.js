// Timeline: events over time by type or tenant, with losses, restarts and readings, zoomed by dragging and by keys, and the record itself.
import { all, ask } from './api.js';
import { step } from './chart.js';
import { h, replace } from './dom.js';
import { logView } from './log.js';
import * as link from './link.js';
import { lossRows, shownAt } from './losses.js';
import { answering, choice, empty, field, panel, say } from './parts.js';
import { plot } from './plot.js';
import { bytesOf, day, iso, moment, number, printable, span, whenOf } from './text.js';

export const title = 'Timeline';

const factTypes = 'reconciliation_ended,connected,disconnected,recorder_started,recorder_stopped';
const mostFacts = 2000;
const factsWithin = 3_000_000; // events: beyond, looking for facts takes too long to be asked unasked
const lossesShown = 12;

export async function show({ root, q, signal, keys }) {
  const values = () => Object.fromEntries(q);
  const set = (name, v) => link.go('timeline', { ...values(), [`${name}64`]: undefined, [name]: v });
  const tenant = link.base64(q, 'tenant');
  const where = { source: q.get('source'), tenant_id_base64: tenant, medium: q.get('medium') };
  const filters = h('form', { class: 'filters', onsubmit: (e) => e.preventDefault() },
    choice('Bars', 'by', q.get('by'), [['', 'by type'], ['tenant', 'by tenant']], (v) => set('by', v)),
    choice('Type', 'type', q.get('type'), [['', 'all'], ['stored', 'stored'], ['removed', 'removed'], ['cleared', 'cleared']], (v) => set('type', v)),
    choice('Medium', 'medium', q.get('medium'), [['', 'any'], ['cpu', 'cpu'], ['disk', 'disk']], (v) => set('medium', v)),
    field('Tenant', 'tenant', tenant === undefined ? '' : printable(bytesOf(tenant)), { placeholder: 'all', size: 12 }, (v) => set('tenant', v)));
  const range = h('div', { class: 'range' });
  const chart = h('div', { class: 'timeline-chart' });
  const losses = panel('Losses in this span');
  const record = panel('The record');
  root.append(h('header', { class: 'head' }, h('h1', null, 'Timeline'), filters), range, chart, h('div', { class: 'columns' }, losses.node, record.node));

  let buckets = [];
  const times = { from: q.get('from'), to: q.get('to') };
  const [a0, b0] = [whenOf(times.from), whenOf(times.to)];
  const bucket = a0 !== null && b0 !== null && b0 > a0 ? `${step(b0 - a0, 120)}ms` : undefined;
  const ok = await answering(chart, signal, async (progress) => {
    buckets = await all('activity', { ...where, ...times, type: q.get('type'), bucket }, { signal, progress });
  }, 'Counting events');
  if (!ok) return undefined;
  if (buckets.length === 0) {
    replace(chart, empty('Nothing was recorded in this span. ', h('a', { href: '#/timeline' }, 'All that was recorded')));
    losses.node.remove();
    record.node.remove();
    return undefined;
  }
  const a = Date.parse(buckets[0].begin);
  const b = Date.parse(buckets.at(-1).end);
  const events = buckets.reduce((n, x) => n + x.events, 0);
  replace(range, h('p', { class: 'lead' }, h('strong', null, moment(iso(a))), ' to ', h('strong', null, moment(iso(b))), `, ${span(b - a)}, ${number(events)} events`),
    h('div', { class: 'buttons', role: 'group', 'aria-label': 'Zoom' },
      button('−', 'Zoom out (-)', () => zoom(2)), button('+', 'Zoom in (+)', () => zoom(0.5)), button('‹', 'Earlier (⇧ ←)', () => pan(-0.5)), button('›', 'Later (⇧ →)', () => pan(0.5)), button('All', 'All that was recorded (0)', () => link.go('timeline', { ...values(), from: undefined, to: undefined }))));

  const to = (from, end, at = q.get('at')) => {
    const wide = Math.max(10, Math.round(end - from));
    link.go('timeline', { ...values(), from: iso(Math.round(from)), to: iso(Math.round(from) + wide), at });
  };
  const cursor = () => whenOf(q.get('at')) ?? (a + b) / 2;
  function zoom(factor) {
    const c = Math.max(a, Math.min(b, cursor()));
    to(c - (c - a) * factor, c + (b - c) * factor);
  }
  const pan = (part) => to(a + (b - a) * part, b + (b - a) * part);
  const move = (ms) => link.go('timeline', { ...values(), at: iso(Math.round(Math.max(a, Math.min(b, ms)))) }, true);
  const width = Date.parse(buckets[0].end) - a;
  const beside = (d) => {
    const at = whenOf(q.get('at'));
    move(at === null ? (d > 0 ? a : b - width) : at + d * width);
  };

  const picture = plot(chart, { buckets, byTenant: q.get('by') === 'tenant', signal, zoom: (from, end) => to(from, end, null), move });
  Object.assign(keys, {
    '+': ['zoom in at the moment', () => zoom(0.5)],
    '=': [null, () => zoom(0.5)], // + without shift
    '-': ['zoom out', () => zoom(2)],
    ArrowLeft: ['move the moment back', () => beside(-1)],
    ArrowRight: ['move the moment on', () => beside(1)],
    'shift ArrowLeft': ['earlier', () => pan(-0.5)],
    'shift ArrowRight': ['later', () => pan(0.5)],
    0: ['all that was recorded', () => link.go('timeline', { ...values(), from: undefined, to: undefined })],
    o: ['the objects at the moment', () => q.get('at') && link.go('objects', { source: q.get('source'), at: q.get('at') })],
  });

  const inSpan = { from: iso(a), to: iso(b) };
  answering(losses.body, signal, async () => {
    const gaps = await all('gaps', { source: q.get('source'), ...inSpan, no_objects: true }, { signal });
    picture.losses(gaps);
    gaps.sort((x, y) => (shownAt(x) < shownAt(y) ? -1 : 1));
    replace(losses.body, gaps.length ? lossRows(gaps.slice(0, lossesShown), day(inSpan.from) === day(inSpan.to)) : empty('Nothing was lost in this span.'),
      gaps.length > lossesShown && h('p', { class: 'note' }, h('a', { href: link.href('gaps', { source: q.get('source'), ...inSpan }) }, `All ${number(gaps.length)} of them`)));
  });
  if (events <= factsWithin) {
    const facts = [];
    ask('log', { source: q.get('source'), ...inSpan, type: factTypes, limit: mostFacts }, (l) => facts.push(l), { signal }).then(() => picture.facts(facts), () => {});
  }
  const log = logView(record.body, signal, { ...where, type: q.get('type') }, inSpan);

  const choose = () => {
    const at = whenOf(q.get('at'));
    picture.cursor(at);
    log.from(at);
    if (at === null) return;
    const x = buckets.find((y) => at >= Date.parse(y.begin) && at < Date.parse(y.end));
    if (x) say(`${moment(q.get('at'))}: ${number(x.events)} events, ${x.gaps.length ? 'something was lost' : 'nothing lost'}`);
  };
  choose();
  return {
    update: (next) => {
      for (const [k, v] of next) if (k !== 'at' && v !== q.get(k)) return false;
      for (const [k] of q) if (k !== 'at' && !next.has(k)) return false;
      q = next;
      choose();
      return true;
    },
  };
}

const button = (text, name, f) => h('button', { type: 'button', title: name, 'aria-label': name, onclick: f }, text);
