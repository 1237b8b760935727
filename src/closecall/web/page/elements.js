// Small things to build pages from.

export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'class') made.className = value;
    else if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children);
  return made;
}

const SVG = 'http://www.w3.org/2000/svg';

export function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function choices(select, entries, chosen) {
  const before = chosen ?? select.value;
  select.replaceChildren(...entries.map(([value, text]) => element('option', { value }, text)));
  if (entries.some(([value]) => String(value) === String(before))) select.value = before;
}

// A canvas with its caption; `spoken` is what it shows, for whoever cannot see it.
export function figure(caption, spoken) {
  const canvas = element('canvas', { role: 'img', 'aria-label': spoken, width: 28, height: 28 });
  const words = element('figcaption', {}, caption);
  const made = element('figure', {}, canvas, words);
  return { made, canvas, words };
}

// Ten bars, one for each class; gives what updates them.
export function bars(names, tone = 1, write = percent) {
  const list = element('div', { class: `bars tone${tone}`, role: 'list' });
  const rows = names.map((name) => {
    const fill = element('i');
    const value = element('span', { class: 'value' });
    const row = element('div', { role: 'listitem' }, element('span', { class: 'name' }, name), element('span', { class: 'track' }, fill), value);
    list.append(row);
    return { fill, value, row };
  });
  const update = (shares, label) => {
    rows.forEach(({ fill, value, row }, number) => {
      const share = shares ? shares[number] : 0;
      fill.style.width = `${Math.min(100, 100 * share).toFixed(1)}%`;
      value.textContent = shares ? write(share) : '';
      row.classList.toggle('first', number === label);
    });
  };
  return { list, update };
}

export const length = (value) => value.toFixed(2);

export const percent = (share) => `${(100 * share).toFixed(share > 0.0005 && share < 0.0995 ? 1 : 0)} %`;

export const NORMS = [['l1', 'L1: all changes added up'], ['l2', 'L2: as the crow flies'], ['linf', 'L∞: the largest change'], ['l0', 'L0: pixels that change']];
export const NORM = { l1: 'L1', l2: 'L2', linf: 'L∞', l0: 'L0' };

// Four digits, never more than is known: proven lower ends down, distances up.
export function amount(value, way = 'near') {
  if (value === null || value === undefined) return '?';
  if (Number.isInteger(value)) return String(value);
  const digits = 10 ** (Math.abs(value) < 1 ? 4 : 3);
  const round = { down: Math.floor, up: Math.ceil, near: Math.round }[way];
  return (round(value * digits) / digits).toFixed(Math.abs(value) < 1 ? 4 : 3);
}

export const STAGES = {
  read: 'reading the model', bounds: 'bounding units', attack: 'attacking', encode: 'writing the model',
  tighten: 'tightening bounds', walk: 'coming nearer', search: 'searching', replay: 'replaying',
};
