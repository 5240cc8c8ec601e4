// A list of any length, of which only the rows that are seen have nodes.
import { h } from './dom.js';

const around = 8; // rows kept above and below what is seen

// list shows rows in a region that scrolls. row(i) makes the node of row i; more() is called when the end comes near; open(i) when a row
// is chosen. All rows are of one height, the variable --row of the style.
export function list({ label, head, row, more, open }) {
  const body = h('div', { class: 'rows', role: 'rowgroup' });
  const region = h('div', { class: 'virtual', role: 'table', 'aria-label': label, tabindex: '0' }, head && h('div', { role: 'rowgroup', class: 'head' }, head), body);
  let count = 0;
  let current = -1;
  let nodes = new Map();
  const height = () => parseFloat(getComputedStyle(region).getPropertyValue('--row')) || 30;
  const top = () => body.offsetTop;

  function draw() {
    const tall = height();
    const first = Math.max(0, Math.floor((region.scrollTop - top()) / tall) - around);
    const last = Math.min(count, Math.ceil((region.scrollTop - top() + region.clientHeight) / tall) + around);
    body.style.height = `${count * tall}px`;
    const kept = new Map();
    for (let i = first; i < last; i++) {
      let node = nodes.get(i);
      if (node?.classList.contains('away')) { // what was not there may have come
        node.remove();
        node = undefined;
      }
      if (!node) {
        node = row(i);
        node.classList.add('row');
        node.setAttribute('role', 'row');
        node.setAttribute('aria-rowindex', i + 2);
        node.addEventListener('click', (e) => {
          if (e.target.closest('a, button')) return;
          choose(i);
          open?.(i);
        });
        body.append(node);
      }
      node.style.transform = `translateY(${i * tall}px)`;
      node.classList.toggle('current', i === current);
      kept.set(i, node);
    }
    for (const [i, node] of nodes) if (!kept.has(i)) node.remove();
    nodes = kept;
    if (last >= count - 2 * around) more?.();
  }

  function choose(i) {
    if (count === 0) return;
    current = Math.max(0, Math.min(count - 1, i));
    const tall = height();
    const at = top() + current * tall;
    if (at < region.scrollTop + top()) region.scrollTop = at - top();
    else if (at + tall > region.scrollTop + region.clientHeight) region.scrollTop = at + tall - region.clientHeight;
    draw();
  }

  region.addEventListener('scroll', () => requestAnimationFrame(draw), { passive: true });
  const o = new ResizeObserver(draw);
  o.observe(region);
  return {
    node: region,
    get current() { return current; },
    // grown tells that there are so many rows now.
    grown: (n) => {
      count = n;
      region.setAttribute('aria-rowcount', n + 1);
      draw();
    },
    // redraw makes all rows anew.
    redraw: () => {
      for (const node of nodes.values()) node.remove();
      nodes = new Map();
      draw();
    },
    choose,
    keys: {
      j: ['next row', () => choose(current + 1)],
      k: ['row before', () => choose(current - 1)],
      Enter: ['open the row', () => current >= 0 && open?.(current)],
    },
    stop: () => o.disconnect(),
  };
}
