// Now: where each source stands, how fast events come, what is in doubt, and what was lost last.
import { again, alive, all } from './api.js';
import { scale, sized, timeAxis } from './chart.js';
import { h, replace, s, table } from './dom.js';
import { lossRows } from './losses.js';
import * as link from './link.js';
import { answering, awaited, bytes, coded, empty, figure, legend, panel } from './parts.js';
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

  // Until the first answers come.
  replace(figures, figure('Asking', '…'));
  replace(sources.body, awaited('Asking'));
  replace(doubts.body, awaited('Counting objects'));
  replace(losses.body, awaited('Looking for losses'));

  const answers = []; // the last few, the oldest first: rates are counted since that
  let gapsShown = -1;
  let answered = Date.now(); // when kvjournal did last
  let trouble = ''; // why there is no answer; empty: there is one
  // fresh tells whether there is an answer. Without one nothing that was answered before is shown as if it still were so.
  const fresh = (ok, error) => {
    if (signal.aborted) return;
    if (ok || error?.status > 0) answered = Date.now();
    const said = ok ? '' : error?.status > 0 ? error.message : 'kvjournal ended, or cannot be reached from here';
    if (said === trouble) return;
    trouble = said;
    root.classList.toggle('stale', !ok);
    if (ok) return; // the answer is shown by who has it
    const last = answers.at(-1);
    replace(warnings, noAnswer(answered, last, said));
    if (!last) return;
    replace(figures, headline(last, null, true));
    replace(sources.body, sourceTable(last, null, true));
  };
  const gone = (e) => fresh(false, e);
  const round = async () => {
    let stats;
    try {
      [stats] = await all('stats', {}, { signal });
    } catch (e) {
      fresh(false, e);
      return;
    }
    fresh(true);
    const last = { at: performance.now(), day: Date.now(), stats };
    const before = answers[0] ?? null;
    replace(warnings, troubles(stats));
    replace(figures, headline(last, before && rate(stats, before.stats, last.at - before.at)));
    replace(sources.body, sourceTable(last, before));
    answers.push(last);
    if (answers.length > rateOver) answers.shift();
    const gaps = stats.sources.reduce((n, x) => n + x.gaps, 0);
    if (gaps !== gapsShown && (await lastLosses(losses.body, stats, gaps, signal, gone))) gapsShown = gaps;
  };

  const minuteOf = theMinute(recent, signal, gone);
  await round();
  const unlessStale = (f) => () => (trouble ? undefined : f());
  again(round, refresh, signal);
  again(unlessStale(() => minuteOf(answers.at(-1)?.stats)), refresh, signal);
  again(unlessStale(() => counts(doubts.body, signal, gone)), 5 * refresh, signal);
  // The figures may rest long: whether anybody is there is asked beside them.
  again(async () => {
    const ok = await alive(signal);
    if (ok && trouble) await round();
    else fresh(ok);
  }, refresh, signal);
}

// rate is events a second between two answers, ms apart.
const rate = (now, before, ms) => (Math.max(0, now.events - before.events) * 1000) / ms;

// noAnswer says since when (ms) there is none; last is what is shown of before, undefined: nothing. why tells the reason.
function noAnswer(since, last, why) {
  const from = (ms) => `${clock(ms).slice(0, 8)} (UTC)`;
  return h('p', { class: 'trouble', role: 'alert' }, h('span', null, h('strong', null, `No answer since ${from(since)}.`), ' ',
    coded(why.endsWith('.') ? why : `${why}.`), ' ', last && `What is shown is as of ${from(last.day)}. `, 'It is asked again until it answers.'));
}

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

// headline: speed is events a second, null: not known yet. stale: there was no answer since.
function headline({ stats, day: answered }, speed, stale) {
  const live = stats.recorder !== undefined;
  const asOf = `as of ${clock(answered).slice(0, 8)}`;
  const newest = stats.sources.map((x) => x.last_received).filter(Boolean).sort().at(-1);
  const j = stats.journal;
  return [
    stale ? figure('No answer', '–', asOf) : figure(live ? 'Recording' : 'At rest', live ? span(stats.recorder.uptime_seconds * 1000) : newest ? day(newest) : '–', live ? asOf : newest && `last event ${clock(newest)}`),
    figure('Events a second', stale ? '–' : live ? (speed === null ? '…' : roughly(speed)) : '–', stale ? 'not known' : live ? null : 'no recorder runs'),
    figure('Events', roughly(stats.events), `${roughly(stats.messages)} messages`),
    figure('Objects', roughly(stats.objects_live), 'present somewhere'),
    figure('Index lag', number(stats.index.lag), 'records behind'),
    figure('Durable to', number(stats.durable_offset), 'offset'),
    figure('On disk', size(j.bytes + stats.index.bytes), j.bytes_per_event === undefined ? null : `journal ${j.bytes_per_event} B an event`),
    live && figure('Buffer', `${Math.round((100 * stats.recorder.buffer_bytes) / stats.recorder.buffer_max_bytes)} %`, `of ${size(stats.recorder.buffer_max_bytes)}`),
  ];
}

// sourceTable: before is an earlier answer, with when it came; null: none. stale: there was no answer since.
function sourceTable({ stats, at }, before, stale) {
  if (stats.sources.length === 0) return empty('Nothing was recorded yet.');
  const now = Date.now();
  const live = stats.recorder !== undefined && !stale;
  const speed = (x) => {
    const old = live && before?.stats.sources.find((y) => y.source === x.source);
    return old ? roughly(rate(x, old, at - before.at)) : '–';
  };
  return h('div', { class: 'scroll' }, table(
    ['Source', 'State', { text: 'Epoch', num: true }, { text: 'Seq', num: true }, { text: 'Events/s', num: true }, { text: 'Last message', num: true }, { text: 'Events', num: true }, { text: 'Losses', num: true }, { text: 'Readings', num: true }],
    stats.sources.map((x) => [
      h('span', null, h('strong', null, bytes(base64Of(x.source), 40)), x.endpoints && h('small', null, ' ', bytes(base64Of(x.endpoints.join(', ')), 60))),
      stale ? 'not known' : x.connected ? h('span', { class: 'on' }, 'connected') : live ? h('span', { class: 'off' }, 'not connected') : 'at rest',
      number(x.epoch), number(x.seq), speed(x),
      x.last_received ? h('span', { title: moment(x.last_received) }, live ? `${span(Math.max(0, now - Date.parse(x.last_received)))} ago` : moment(x.last_received)) : '–',
      number(x.events), x.gaps ? h('a', { href: link.href('gaps', { source: x.source }) }, number(x.gaps)) : '0', number(x.readings ?? 0),
    ]), { class: 'stack' }));
}

// counts says how much is sure, for each tenant.
const counts = (node, signal, gone) => answering(node, signal, async (progress) => {
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
}, 'Counting objects', gone);

// shareBar draws the confirmed part full and the rest hatched.
function shareBar(x) {
  const sure = (100 * x.confirmed) / x.objects;
  return s('svg', { class: 'bar-line', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${sure.toFixed(1)} % confirmed` },
    s('rect', { x: 0, y: 0, width: sure, height: 8, class: 'present confirmed' }),
    s('rect', { x: sure, y: 0, width: 100 - sure, height: 8, class: 'present uncertain' }));
}

async function lastLosses(node, stats, count, signal, gone) {
  return answering(node, signal, async () => {
    const newest = Math.max(...stats.sources.map((x) => Date.parse(x.last_received ?? 0)));
    const lines = count === 0 ? [] : await all('gaps', { no_objects: true, from: count > manyGaps ? newest - 3600e3 : undefined }, { signal });
    lines.sort((a, b) => b.first_offset_after - a.first_offset_after);
    replace(node, lines.length ? lossRows(lines.slice(0, lastShown)) : empty('No loss was seen.'));
  }, 'Asking', gone);
}

// theMinute draws in a panel the events of the minute up to the last event, and the seconds in which something was lost. What it returns
// is told the figures, and asks anew if there are new events.
function theMinute({ node, body }, signal, gone) {
  const height = 150;
  const holder = h('div', { class: 'chart' }, awaited('Counting events'));
  const bar = (c) => s('rect', { x: 1, y: 1, width: 10, height: 10, class: c });
  replace(body, holder, legend([bar('stored'), 'events a second, stored'], [bar('removed'), 'removed'], [bar('cleared'), 'cleared'], [s('rect', { class: 'window', width: 12, height: 12 }), 'something was lost']));
  let buckets = [];
  let shown = -1;
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
    if (!stats) return;
    const last = Math.max(0, ...stats.sources.map((x) => Date.parse(x.last_time ?? x.last_received ?? 0)));
    if (last === shown) return;
    if (last === 0) {
      replace(holder, empty('Nothing was recorded yet.'));
      return;
    }
    const title = node.querySelector('h2');
    title.textContent = day(last) === day(Date.now()) ? 'The last minute' : `The last minute, ${day(last)}`;
    if (await answering(holder, signal, async () => {
      buckets = await all('activity', { from: last - minute, to: last, bucket: '1s' }, { signal });
    }, 'Counting events', gone)) shown = last;
    draw();
  };
}
