// The record itself: events and facts in their order, a page at a time.
import { all } from './api.js';
import { h, replace } from './dom.js';
import * as link from './link.js';
import { lost, missing } from './losses.js';
import { answering, bytes, empty, failure, medium } from './parts.js';
import { clock, day, iso, moment, words } from './text.js';

const page = 150; // lines a question
const mostPage = 16 * page; // where one message has more events

// logView shows the record of a span in a node. from(ms) begins it at a moment; null: at the beginning of the span.
export function logView(node, signal, where, inSpan) {
  let abort = new AbortController();
  let shown;
  signal.addEventListener('abort', () => abort.abort());
  return {
    from: async (ms) => {
      if (ms === shown) return;
      shown = ms;
      abort.abort();
      abort = new AbortController();
      const mine = abort.signal;
      await new Promise((r) => setTimeout(r, 120)); // keys that are held do not ask for each step
      if (mine.aborted) return;
      const body = h('tbody');
      let last = 0;
      const more = h('button', { type: 'button', onclick: () => read().catch((e) => mine.aborted || failure(more.parentNode, e)) }, 'More');
      const read = async () => {
        let limit = page;
        let lines;
        let cut;
        // A message's events are shown together: a page that ends within one leaves it to the next.
        for (;;) {
          lines = await all('log', { ...where, from: ms === null ? inSpan.from : iso(ms), to: inSpan.to, limit, after: last || undefined }, { signal: mine });
          cut = lines.length < limit ? lines : lines.filter((l) => l.offset !== lines.at(-1).offset);
          if (cut.length > 0 || lines.length === 0 || limit >= mostPage) break;
          limit *= 4;
        }
        const part = cut.length === 0 && lines.length > 0;
        for (const l of part ? lines : cut) body.append(row(l));
        if (part) body.append(h('tr', null, h('td', { colspan: 4, class: 'fact' }, `The message at offset ${lines[0].offset} has more events than are shown here.`)));
        last = (part ? lines : cut).at(-1)?.offset ?? last;
        more.hidden = lines.length < limit;
        return lines.length;
      };
      await answering(node, mine, async () => {
        if ((await read()) === 0) replace(node, empty('Nothing was recorded from there to the end of the span.'));
        else {
          replace(node, ms !== null && h('p', { class: 'note' }, `From ${moment(iso(ms))} on. `, h('a', { href: link.href('objects', { source: where.source, at: iso(ms) }) }, 'Objects at this moment')),
            h('div', { class: 'scroll log', tabindex: '0', role: 'region', 'aria-label': 'The record' }, h('table', null,
              h('thead', null, h('tr', null, ['Time (UTC)', 'Seq', 'What', 'Object'].map((t) => h('th', { scope: 'col' }, t)))), body)), more);
        }
      }, 'Reading');
    },
  };
}

function row(l) {
  const t = l.time ?? l.received;
  const cells = [h('td', { class: 'time', title: t && `${day(t)} · offset ${l.offset}` }, clock(t)), h('td', { class: 'ids' }, l.seq !== undefined ? `${l.epoch}/${l.seq}` : '')];
  if (l.object_key_base64 !== undefined) {
    cells.push(h('td', null, l.type, ' ', medium(l.medium ?? '')), h('td', { class: 'key' }, h('a', { href: link.href('object', { ...link.nameValues(l), at: `offset:${l.offset}` }) }, bytes(l.object_key_base64, 34)), ' ', h('small', null, bytes(l.tenant_id_base64, 16))));
  } else if (l.type === 'gap') {
    cells.push(h('td', { colspan: 2 }, h('a', { class: 'lost', href: link.href('gaps', { gap: `${l.source}:${l.first_offset_after}:${l.cause}` }) }, words(l.cause)), ` seq ${missing(l)} missing, events lost: ${lost(l)}`));
  } else if (l.type === 'cleared') {
    cells.push(h('td', null, 'cleared'), h('td', null, h('small', null, 'all of tenant ', bytes(l.tenant_id_base64, 24))));
  } else {
    const c = l.content;
    cells.push(h('td', { colspan: 2, class: 'fact' }, words(l.type), c?.corrections !== undefined && `: ${c.corrections} corrections, ${c.agreed} agreed`, l.damage && `: ${l.damage}`));
  }
  return h('tr', { class: l.type === 'gap' ? 'gap' : null }, cells);
}
