// None: what a link shows that names no view.
import { h } from './dom.js';
import * as link from './link.js';
import { text } from './text.js';
import { listed, views } from './views.js';

export const title = 'No such view';

export async function show({ root }) {
  root.append(h('h1', null, title), h('p', { class: 'lead' }, 'This page has no view ', h('code', null, text(link.read().view, 60)), '. It has these:'),
    h('p', { class: 'links' }, listed.map((name) => h('a', { href: link.href(name) }, views[name].title))));
}
