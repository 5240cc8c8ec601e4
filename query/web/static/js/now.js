// Now: where each source stands, how fast events come, what is in doubt, and what was lost last.
import { again, all } from './api.js';
import { scale, sized, timeAxis } from './chart.js';
import { h, replace, s, table } from './dom.js';
import { lossRows } from './losses.js';
import * as link from './link.js';
import { answering, bytes, empty, failure, figure, panel } from './parts.js';
import { typeBars } from './plot.js';
import { base64Of, clock, day, moment, number, roughly, size, span, words } from './text.js';

export const title = 'Now';

const refresh = 2000; // ms
const rateOver = 4; // answers
const minute = 60_000; // ms
const lastShown = 6; // losses
const manyGaps = 2000; // beyond, only those of the last hour are asked for

export async function show({ root, signal }) {
  const warnings = h('div');
  const figures = h('dl', { class: 'figures' });
  const recent = panel('The last minute', h('a', { href: link.href('timeline') }, 'Timeline'));
  const doubts = panel('In doubt', h('a', { href: link.href('objects', { certainty: 'uncertain' }) }, 'Objects in doubt'));
  const sources = panel('Sources');
  const losses = panel('Last losses', h('a', { href: link.href('gaps') }, 'All losses'));
  root.append(h('h1', { class: 'unseen' }, 'Now'), warnings, figures, h('div', { class: 'columns' }, recent.node, doubts.node), sources.node, losses.node);

  const answers = []; // the last few, the oldest first: rates are counted since that
  let gapsShown = -1;
  const round = async () => {
    let stats;
    try {
      [stats] = await all('stats', {}, { signal });
    } catch (e) {
      if (!signal.aborted) failure(warnings, e);
      return;
    }
    const at = performance.now();
    const before = answers[0] ?? null;
    replace(warnings, troubles(stats));
    replace(figures, headline(stats, before && rate(stats, before.stats, at - before.at)));
    replace(sources.body, sourceTable(stats, before, at));
    answers.push({ at, stats });
    if (answers.length > rateOver) answers.shift();
    const gaps = stats.sources.reduce((n, x) => n + x.gaps, 0);
    if (gaps !== gapsShown && (await lastLosses(losses.body, stats, gaps, signal))) gapsShown = gaps;
  };

  const minuteOf = theMinute(recent, signal);
  await round();
  again(round, refresh, signal);
  again(() => minuteOf(answers.at(-1)?.stats), refresh, signal);
  again(() => counts(doubts.body, signal), 5 * refresh, signal);
}

// rate is events a second between two answers, ms apart.
const rate = (now, before, ms) => (Math.max(0, now.events - before.events) * 1000) / ms;

// troubles are what a person should look at first.
function troubles(stats) {
  const out = [];
  const r = stats.recorder;
  if (r?.paused) out.push(`Recording pauses since ${moment(r.paused.since)}: only ${size(r.paused.free_bytes)} of the disk are free, and ${size(r.min_free_bytes)} are to stay free. Make room; it goes on by itself.`);
  if (r?.disk_full) out.push('The disk is full: what was received waits for room. Make room.');
  const off = new Set(stats.sources.filter((x) => !x.connected).map((x) => x.source)); // of a group, one that delivers is enough
  for (const x of r?.sockets ?? []) {
    if (!x.connected && off.has(x.source)) out.push(`${x.endpoint} is not connected${x.last_error ? `: ${x.last_error} (${clock(x.last_error_time)})` : ''}.`);
  }
  for (const m of r?.masters ?? []) if (m.delivers && !m.answers) out.push(`The master at ${m.url} does not answer: doubts stay until it does.`);
  return out.map((text) => h('p', { class: 'trouble', role: 'alert' }, text));
}

// headline: speed is events a second, null: not known yet.
function headline(stats, speed) {
  const live = stats.recorder !== undefined;
  const newest = stats.sources.map((x) => x.last_received).filter(Boolean).sort().at(-1);
  const j = stats.journal;
  return [
    figure(live ? 'Recording' : 'At rest', live ? span(stats.recorder.uptime_seconds * 1000) : newest ? day(newest) : '–', live ? 'since it began' : newest && `last event ${clock(newest)}`),
    figure('Events a second', live ? (speed === null ? '…' : roughly(speed)) : '–', live ? null : 'no recorder runs'),
    figure('Events', roughly(stats.events), `${roughly(stats.messages)} messages`),
    figure('Objects', roughly(stats.objects_live), 'present somewhere'),
    figure('Index lag', number(stats.index.lag), 'records behind'),
    figure('Durable to', number(stats.durable_offset), 'offset'),
    figure('On disk', size(j.bytes + stats.index.bytes), j.bytes_per_event === undefined ? null : `journal ${j.bytes_per_event} B an event`),
    live && figure('Buffer', `${Math.round((100 * stats.recorder.buffer_bytes) / stats.recorder.buffer_max_bytes)} %`, `of ${size(stats.recorder.buffer_max_bytes)}`),
  ];
}

// sourceTable: before is an earlier answer, with when it came; null: none.
function sourceTable(stats, before, at) {
  if (stats.sources.length === 0) return empty('Nothing was recorded yet.');
  const now = Date.now();
  const live = stats.recorder !== undefined;
  const speed = (x) => {
    const old = live && before?.stats.sources.find((y) => y.source === x.source);
    return old ? roughly(rate(x, old, at - before.at)) : '–';
  };
  return h('div', { class: 'scroll' }, table(
    ['Source', 'State', { text: 'Epoch', num: true }, { text: 'Seq', num: true }, { text: 'Events/s', num: true }, { text: 'Last message', num: true }, { text: 'Events', num: true }, { text: 'Losses', num: true }, { text: 'Readings', num: true }],
    stats.sources.map((x) => [
      h('span', null, h('strong', null, bytes(base64Of(x.source), 40)), x.endpoints && h('small', null, ' ', bytes(base64Of(x.endpoints.join(', ')), 60))),
      x.connected ? h('span', { class: 'on' }, 'connected') : live ? h('span', { class: 'off' }, 'not connected') : 'at rest',
      number(x.epoch), number(x.seq), speed(x),
      x.last_received ? h('span', { title: moment(x.last_received) }, live ? `${span(Math.max(0, now - Date.parse(x.last_received)))} ago` : moment(x.last_received)) : '–',
      number(x.events), x.gaps ? h('a', { href: link.href('gaps', { source: x.source }) }, number(x.gaps)) : '0', number(x.readings ?? 0),
    ]), { class: 'stack' }));
}

// counts says how much is sure, for each tenant.
const counts = (node, signal) => answering(node, signal, async (progress) => {
  const [c] = await all('objects', { count: true }, { signal, progress });
  if (c.objects === 0) {
    replace(node, empty('No object is known to be present.'));
    return;
  }
  const several = new Set(c.tenants.map((t) => t.source)).size > 1;
  const row = (name, values, x) => h('tr', null, h('th', { scope: 'row' }, h('a', { href: link.href('objects', values) }, name)),
    h('td', { class: 'num' }, number(x.objects)), h('td', { class: 'num' }, x.uncertain ? h('a', { class: 'uncertain', href: link.href('objects', { ...values, certainty: 'uncertain' }) }, number(x.uncertain)) : '0'),
    h('td', { class: 'share' }, shareBar(x)));
  replace(node, h('table', { class: 'shares' },
    h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'Tenant'), h('th', { scope: 'col', class: 'num' }, 'Present'), h('th', { scope: 'col', class: 'num' }, 'In doubt'), h('th', { scope: 'col' }, h('span', { class: 'unseen' }, 'Share')))),
    h('tbody', null, row('all', {}, c), c.tenants.slice(0, 8).map((t) => row([bytes(t.tenant_id_base64, 28), several && h('small', null, ` of ${t.source}`)], link.nameValues(t), t)))),
  c.tenants.length > 8 && h('p', { class: 'note' }, `and ${number(c.tenants.length - 8)} more`));
}, 'Counting objects');

// shareBar draws the confirmed part full and the rest hatched.
function shareBar(x) {
  const sure = (100 * x.confirmed) / x.objects;
  return s('svg', { class: 'bar-line', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${sure.toFixed(1)} % confirmed` },
    s('rect', { x: 0, y: 0, width: sure, height: 8, class: 'present confirmed' }),
    s('rect', { x: sure, y: 0, width: 100 - sure, height: 8, class: 'present uncertain' }));
}

async function lastLosses(node, stats, count, signal) {
  return answering(node, signal, async () => {
    const newest = Math.max(...stats.sources.map((x) => Date.parse(x.last_received ?? 0)));
    const lines = count === 0 ? [] : await all('gaps', { no_objects: true, from: count > manyGaps ? newest - 3600e3 : undefined }, { signal });
    lines.sort((a, b) => b.first_offset_after - a.first_offset_after);
    replace(node, lines.length ? lossRows(lines.slice(0, lastShown)) : empty('No loss was seen.'));
  });
}

// theMinute draws in a panel the events of the minute up to the last event, and the seconds in which something was lost. What it returns
// is told the figures, and asks anew if there are new events.
function theMinute({ node, body }, signal) {
  const height = 150;
  const holder = h('div', { class: 'chart' });
  replace(body, holder);
  let buckets = [];
  let shown = 0;
  const draw = sized(holder, signal, (width) => {
    if (buckets.length === 0) return;
    const [a, b] = [Date.parse(buckets[0].begin), Date.parse(buckets.at(-1).end)];
    const x = scale(a, b, 8, width - 48);
    const lost = buckets.filter((k) => k.gaps.length > 0);
    replace(holder, s('svg', { width, height, role: 'img', 'aria-label': `Events of a minute, by second; something was lost in ${lost.length} of them` },
      lost.map((k) => s('rect', { class: 'window', x: x(Date.parse(k.begin)), width: x(Date.parse(k.end)) - x(Date.parse(k.begin)), y: 0, height: height - 24 },
        s('title', null, k.gaps.map((g) => words(g.cause)).join(', ')))),
      typeBars(buckets, x, width, height - 24).node, timeAxis(x, a, b, height - 24, width - 56)));
  });
  return async (stats) => {
    const last = Math.max(0, ...(stats?.sources ?? []).map((x) => Date.parse(x.last_time ?? x.last_received ?? 0)));
    if (last === shown) return;
    const title = node.querySelector('h2');
    title.textContent = day(last) === day(Date.now()) ? 'The last minute' : `The last minute, ${day(last)}`;
    if (await answering(holder, signal, async () => {
      buckets = await all('activity', { from: last - minute, to: last, bucket: '1s' }, { signal });
    })) shown = last;
    draw();
  };
}
