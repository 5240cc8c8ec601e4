// Parts that several views show: keys, states, certainties, notes, errors, choices.
import { h, replace, s } from './dom.js';
import { bytes64, number, sizeOf, text, words } from './text.js';

// bytes shows bytes of the stream: at most max characters, kept apart from the direction and the words of what is around.
export function bytes(base64, max = 80) {
  const shown = bytes64(base64, max);
  return h('bdi', { class: 'bytes', dir: 'ltr', title: sizeOf(base64) > max ? bytes64(base64, 400) : null }, shown);
}

const tail = 16; // characters

// shortKey shows a key in a row that may be too narrow for it: it gives way in its middle, so that both ends are seen. The whole is its title.
export function shortKey(base64) {
  const shown = [...bytes64(base64, 72)];
  const cut = shown.length > 2 * tail ? shown.length - tail : shown.length;
  return h('bdi', { class: 'bytes short-key', dir: 'ltr', title: bytes64(base64, 2000) }, h('span', { class: 'from' }, shown.slice(0, cut).join('')), cut < shown.length && h('span', null, shown.slice(cut).join('')));
}

// tenant shows a tenant, or another short name.
export const tenant = (base64) => bytes(base64, 40);

// sign is the picture of a state: full or empty, hatched where it is uncertain.
export function sign(present, certainty) {
  return s('svg', { class: `sign ${certainty}`, viewBox: '0 0 12 12', width: 12, height: 12, 'aria-hidden': 'true' },
    s('rect', { x: 1, y: 1, width: 10, height: 10, rx: 2, class: `${present ? 'present' : 'absent'} ${certainty}` }));
}

// state shows a state with its certainty: sign and words.
export const state = (present, certainty) => h('span', { class: `state ${certainty}` }, sign(present, certainty), ' ', present ? 'present' : 'absent', certainty === 'uncertain' && h('small', null, ' uncertain'));

// certaintyOf shows a certainty.
export const certaintyOf = (certainty) => h('span', { class: `tag ${certainty}` }, certainty);

// medium shows the name of a medium: it is text of the stream too.
export const medium = (name) => h('bdi', { class: 'medium', dir: 'ltr' }, text(name, 24));

// media shows the state of each medium in short, of at most a few.
export function media(of, most) {
  const all = Object.entries(of);
  return [all.slice(0, most).map(([name, m]) => h('span', { class: `has ${m.state} ${m.certainty}`, title: `${text(name, 40)}: ${m.state}, ${m.certainty}${m.doubt ? ` (${words(m.doubt.cause)})` : ''}` },
    sign(m.state === 'present', m.certainty), ' ', medium(name), h('span', { class: 'unseen' }, ` ${m.state} ${m.certainty}`))), all.length > most && h('small', null, `and ${number(all.length - most)} more`)];
}

// cause shows the cause of a loss.
export const cause = (name) => h('span', { class: 'cause' }, words(name));

// figure is a number with its name.
export const figure = (name, value, note) => h('div', { class: 'figure' }, h('dt', null, name), h('dd', null, value, note && h('small', null, note)));

// panel is a section with a heading; what is beside the heading comes in tools.
export function panel(title, tools, ...children) {
  const body = h('div', { class: 'body' }, children);
  const node = h('section', { class: 'panel' }, h('header', null, h('h2', null, title), tools), body);
  return { node, body };
}

// awaited is what stands where the first answer is still to come.
export const awaited = (what) => h('p', { class: 'waiting awaited', role: 'status' }, `${what} …`);

// waiting shows in a node that an answer is awaited, once it takes long: in words, or, where something is there already, by its
// looks. What it returns tells of progress.
function waiting(node, what) {
  const line = h('p', { class: 'waiting', role: 'status' });
  const timer = setTimeout(() => {
    node.classList.add('busy');
    node.querySelector(':scope > .awaited')?.remove();
    if (node.childElementCount === 0) node.prepend(line);
    line.textContent ||= `${what} …`;
  }, 250);
  return {
    progress: (done, total) => {
      line.textContent = total ? `${what}: ${Math.round((100 * done) / total)} %${total < 1000 ? '' : ` of ${number(total)}`}` : `${what} …`;
    },
    end: () => {
      clearTimeout(timer);
      node.classList.remove('busy');
      line.remove();
    },
  };
}

// answering runs f and shows in a node that it waits, or what went wrong. False: it did, or nobody waits any more. Where nobody answers,
// gone(error) is told instead, if there is such, and what the node has stays.
export async function answering(node, signal, f, what = 'Asking', gone = null) {
  const w = waiting(node, what);
  try {
    await f(w.progress);
    return !signal.aborted;
  } catch (e) {
    if (signal.aborted) return false;
    const known = [...node.children].some((c) => !c.classList.contains('waiting'));
    if (gone && e.status === 0 && known) gone(e);
    else failure(node, e, () => answering(node, signal, f, what, gone));
    return false;
  } finally {
    w.end();
  }
}

// failure shows what went wrong, with a way to ask again, but for what was wrong with the question.
export function failure(node, error, retry) {
  const box = h('div', { class: 'failure', role: 'alert' }, h('p', null, coded(error.message)),
    retry && error.status !== 400 && h('button', { type: 'button', onclick: () => {
      box.remove();
      retry();
    } }, 'Ask again'));
  replace(node, box);
}

// coded shows a text made for a terminal: what stands within backticks is code.
export function coded(text) {
  const parts = text.split('`');
  return parts.length % 2 === 0 ? text : parts.map((part, i) => (i % 2 ? h('code', null, part) : part));
}

// empty says that there is nothing.
export const empty = (...text) => h('p', { class: 'empty' }, text);

// choice is a select: options are [value, text].
export function choice(label, name, value, options, change) {
  const select = h('select', { name, onchange: (e) => change(e.target.value) }, options.map(([v, text]) => h('option', { value: v, selected: v === (value ?? '') }, text)));
  return h('label', { class: 'choice' }, h('span', null, label), select);
}

// field is a text field, which changes at Enter or when it is left.
export function field(label, name, value, attributes, change) {
  const input = h('input', { name, value: value ?? '', spellcheck: 'false', autocomplete: 'off', ...attributes, onchange: (e) => change(e.target.value) });
  return h('label', { class: 'choice' }, h('span', null, label), input);
}

// legend explains what a chart shows: pairs of an SVG node of 12 × 12 and text.
export const legend = (...entries) => h('ul', { class: 'legend' }, entries.map(([node, text]) => h('li', null, s('svg', { width: 12, height: 12, 'aria-hidden': 'true' }, node), text)));

// say tells a listener of what changed, without moving the focus.
export function say(text) {
  let node = document.getElementById('said');
  if (!node) {
    node = h('div', { id: 'said', class: 'unseen', role: 'status', 'aria-live': 'polite' });
    document.body.append(node);
  }
  node.textContent = text;
}

// titled names the window after an object.
export const titled = (base64) => {
  document.title = `${bytes64(base64, 40)} · kvjournal`;
};
