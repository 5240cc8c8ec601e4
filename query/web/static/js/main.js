// The frame: which view is shown, search, keys, theme. Each view is a module with a title and show(ctx); ctx is {root, q, signal, keys}:
// where it draws, its part of the link, until when, and its keys, by name. show may return {update(q)}, which says whether it
// took a new link by itself.
import { h, replace } from './dom.js';
import * as link from './link.js';
import { failure } from './parts.js';
import { base64Of } from './text.js';
import * as none from './none.js';
import { listed, views } from './views.js';

const main = document.getElementById('main');
let shown = null;

function navigation(current) {
  replace(document.getElementById('nav'), listed.map((name, i) => h('a', {
    href: link.href(name), 'aria-current': name === current ? 'page' : null, title: `Key ${i + 1}`,
  }, views[name].title)));
}

async function show() {
  const at = link.now();
  const { view, q } = link.read(at);
  const known = Object.hasOwn(views, view);
  const v = known ? views[view] : none;
  if (shown?.view === v && shown.control?.update?.(q)) {
    drawn(at);
    return;
  }
  shown?.abort.abort();
  const abort = new AbortController();
  const moved = shown !== null && shown.view !== v;
  const it = { view: v, abort, keys: {}, control: null };
  shown = it;
  main.setAttribute('aria-busy', 'true');
  navigation(view);
  document.title = `${v.title} · kvjournal`;
  const root = h('div', { class: `view ${known ? view : 'none'}` });
  replace(main, root);
  if (moved) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  try {
    it.control = await v.show({ root, q, signal: abort.signal, keys: it.keys });
  } catch (e) {
    if (!abort.signal.aborted) failure(root, e, show);
  }
  if (shown === it) drawn(at);
}

// drawn notes that what a link names is shown.
function drawn(at) {
  main.removeAttribute('aria-busy');
  main.dataset.link = at;
  keysOfView();
}

// The search: a key, as text, or quoted as the page and the tables show it.
const find = document.getElementById('find');
find.addEventListener('submit', (e) => {
  e.preventDefault();
  const input = document.getElementById('find-key');
  const text = input.value.trim();
  if (text === '') return;
  let base64;
  try {
    base64 = base64Of(unquoted(text));
  } catch (error) {
    input.setCustomValidity(error.message);
    input.reportValidity();
    input.addEventListener('input', () => input.setCustomValidity(''), { once: true });
    return;
  }
  input.blur();
  link.go('object', link.nameValues({ object_key_base64: base64 }));
});

// unquoted reads what printable writes: bytes.
function unquoted(text) {
  const encoder = new TextEncoder();
  if (!/^".*"$/s.test(text)) return encoder.encode(text);
  const out = [];
  const one = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 };
  for (const m of text.slice(1, -1).matchAll(/\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})|\\([abtnvfr"\\])|(\\)|([^\\]+)/gi)) {
    if (m[1]) out.push(parseInt(m[1], 16));
    else if (m[2] || m[3]) out.push(...encoder.encode(String.fromCodePoint(parseInt(m[2] ?? m[3], 16))));
    else if (m[4]) out.push(one[m[4]]);
    else if (m[5]) throw new Error('A \\ in quotes is followed by x, u, U or one of abtnvfr"\\.');
    else for (const b of encoder.encode(m[6])) out.push(b);
  }
  return new Uint8Array(out);
}

// Themes: as the system has it, light, dark.
const themes = ['system', 'light', 'dark'];
const pictures = { system: '◐', light: '○', dark: '●' };
function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem('kvjournal.theme', name);
  const b = document.getElementById('theme');
  b.textContent = pictures[name];
  b.title = `Colours: ${name} (t)`;
  b.setAttribute('aria-label', `Colours: ${name}`);
}
const nextTheme = () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]);
theme(themes.includes(localStorage.getItem('kvjournal.theme')) ? localStorage.getItem('kvjournal.theme') : 'system');
document.getElementById('theme').addEventListener('click', nextTheme);

// Keys. Those of a view are told by the view, with what they do: {'+': ['zoom in', f]}; null: it is another name of one.
const general = {
  ...Object.fromEntries(listed.map((name, i) => [i + 1, [views[name].title, () => link.go(name)]])),
  '/': ['find an object', () => document.getElementById('find-key').select()],
  r: ['ask again', again],
  t: ['colours: system, light, dark', nextTheme],
  '?': ['these keys', showKeys],
};

function again() {
  shown.control = null;
  show();
}

const listOf = (keys) => h('dl', { class: 'keys' }, Object.entries(keys).filter(([, [what]]) => what).map(([k, [what]]) => [h('dt', null, h('kbd', null, names[k] ?? k)), h('dd', null, what)]));

// keysOfView tells the keys of the view that is shown, where keys are told. A view has some only once it is drawn.
function keysOfView() {
  const node = document.getElementById('keys-of-view');
  if (node) replace(node, Object.keys(shown.keys).length > 0 && [h('h3', null, `In ${shown.view.title}`), listOf(shown.keys)]);
}

function showKeys() {
  const dialog = h('dialog', { class: 'box', 'aria-labelledby': 'keys-title', onclose: () => dialog.remove() },
    h('h2', { id: 'keys-title' }, 'Keys'), listOf(general), h('div', { id: 'keys-of-view' }),
    h('form', { method: 'dialog', class: 'buttons' }, h('button', { class: 'main', autofocus: true, onclick: (e) => {
      e.preventDefault();
      dialog.close();
    } }, 'Close')));
  document.body.append(dialog);
  keysOfView();
  dialog.showModal();
}
const names = { ArrowLeft: '←', ArrowRight: '→', 'shift ArrowLeft': '⇧ ←', 'shift ArrowRight': '⇧ →', ' ': 'space' };

document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  const field = e.target.closest?.('input:not([type=range]), select, textarea');
  if (field) {
    if (e.key === 'Escape') field.blur();
    return;
  }
  if (e.target.closest?.('a, button, summary') && (e.key === 'Enter' || e.key === ' ')) return;
  if (e.target.type === 'range' && e.key.startsWith('Arrow')) return;
  const name = e.shiftKey && e.key.startsWith('Arrow') ? `shift ${e.key}` : e.key;
  const key = shown?.keys[name] ?? general[name];
  if (!key) return;
  e.preventDefault();
  key[1]();
});

document.getElementById('help').addEventListener('click', showKeys);
document.getElementById('skip').addEventListener('click', (e) => {
  e.preventDefault();
  main.focus();
});
addEventListener('hashchange', show);
show();
