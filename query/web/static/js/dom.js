// Nodes. All of the page's are made here: text goes in as text, and there is no way to put markup in.

const SVG = 'http://www.w3.org/2000/svg';

// fill gives a node its attributes, listeners (onclick: f) and children: nodes, strings, numbers, arrays; null and false are left out.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value == null || value === false) continue;
    if (name.startsWith('on')) {
      if (typeof value !== 'function') throw new TypeError(`${name}: a listener is a function`);
      node.addEventListener(name.slice(2), value);
    } else if (name === 'href' && !/^(#|web\/)/.test(value)) {
      throw new TypeError('a link leads to the page itself');
    } else {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  add(node, children);
  return node;
}

// add appends children to a node.
export function add(node, ...children) {
  for (const c of children.flat(Infinity)) {
    if (c == null || c === false) continue;
    node.append(c instanceof Node ? c : String(c));
  }
  return node;
}

// h makes an HTML element.
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

// s makes an SVG element.
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// replace gives a node other children.
export function replace(node, ...children) {
  node.replaceChildren();
  return add(node, ...children);
}

// table makes a table: heads are strings, or {text, num: true}; rows are arrays of cells, or {cells, …attributes of the row}.
export function table(heads, rows, attributes) {
  const column = heads.map((x) => (typeof x === 'string' ? { text: x } : x));
  return h('table', attributes,
    h('thead', null, h('tr', null, column.map((c) => h('th', { scope: 'col', class: c.num && 'num' }, c.text)))),
    h('tbody', null, rows.map((row) => {
      const { cells, ...rest } = Array.isArray(row) ? { cells: row } : row;
      return h('tr', rest, cells.map((cell, i) => h('td', { class: column[i].num && 'num', 'data-label': column[i].text }, cell)));
    })));
}

// asTable is a chart's content as a table, made when it is opened.
export function asTable(make) {
  const box = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'The chart as a table' });
  const d = h('details', { class: 'as-table', ontoggle: () => d.open && replace(box, make()) }, h('summary', null, 'As a table'), box);
  return d;
}
