// How losses are written: in Now, Timeline and Gaps alike.
import { h, table } from './dom.js';
import { breaks } from './causes.js';
import * as link from './link.js';
import { cause } from './parts.js';
import { clock, moment, number, roughly, span } from './text.js';

// shownAt is when a loss showed: the publisher's time, else ours.
export const shownAt = (g) => g.time_after ?? g.received;

// place tells a loss from all others, for a link.
export const place = (g) => `${g.source}:${g.first_offset_after}:${g.cause}`;

// missing are the numbers that were not received.
export function missing(g) {
  if (g.first_missing_offset !== undefined) return `offsets ${number(g.first_missing_offset)}–${number(g.last_missing_offset)}`;
  if (g.first_missing_seq === undefined) return `– (epoch ${g.epoch})`;
  if (g.cause === 'damaged') return `(is ${g.epoch}/${g.first_missing_seq})`;
  if (g.first_missing_seq === g.last_missing_seq) return `${g.epoch}/${g.first_missing_seq}`;
  return `${g.epoch}/${g.first_missing_seq}–${g.last_missing_seq}`;
}

// lost is how many events were lost.
export function lost(g) {
  if (g.lost_events !== undefined) return roughly(g.lost_events);
  if (g.lost_events_min !== undefined) return g.lost_events_min === g.lost_events_max ? roughly(g.lost_events_min) : `${roughly(g.lost_events_min)}–${roughly(g.lost_events_max)}`;
  if (g.damage) return g.damage;
  return g.cause === 'reconnect' ? 'none, it seems' : 'not known';
}

// lostOf is how many events several losses lost together: "at least" only where it is not exactly known of one; empty: nothing is known.
export function lostOf(losses) {
  let n = 0;
  let exact = true;
  for (const g of losses) {
    n += g.lost_events ?? g.lost_events_min ?? 0;
    exact &&= g.lost_events !== undefined || (g.lost_events_min !== undefined && g.lost_events_min === g.lost_events_max);
  }
  return n > 0 ? `${number(n)} events lost${exact ? '' : ' at least'}` : '';
}

// within is how long before it showed it may have begun.
export const within = (g) => (g.time_before && g.time_after && g.time_after >= g.time_before ? span(Date.parse(g.time_after) - Date.parse(g.time_before)) : '–');

// doubt is what a loss put in doubt.
export function doubt(g) {
  const d = g.in_doubt;
  if (!d) return 'not counted';
  return d.objects + d.already_in_doubt === 0 ? 'none' : `${roughly(d.objects)} of ${roughly(d.objects + d.already_in_doubt)}`;
}

// isLoss: something is missing, as far as can be told, or may be.
export const isLoss = (g) => !breaks.has(g.cause) || (g.missing_seqs ?? 0) > 0;

// lossRows are losses in short, each a link to all that is known of it.
export const lossRows = (lines, sameDay = false) => h('div', { class: 'scroll' }, table(['Shown at (UTC)', 'Cause', 'Missing seq', { text: 'Lost events', num: true }, 'Resolved'], lines.map((g) => [
  h('a', { href: link.href('gaps', { gap: place(g) }) }, sameDay ? clock(shownAt(g)) : moment(shownAt(g))), cause(g.cause), missing(g), lost(g),
  g.resolved_by ? `by reading ${clock(g.resolved_by.time)}` : 'not yet',
]), { class: 'stack losses' }));
