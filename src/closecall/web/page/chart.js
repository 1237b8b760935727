// The proven interval as it closes: distance up, seconds across, the band in between unknown.

import { NORM, amount, drawn, element } from './elements.js';

const WIDTH = 340;
const HEIGHT = 190;
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 14, 24, 34];

export function intervalChart(trail, { norm, what = `${NORM[norm]} distance`, seconds }) {
  const known = trail.filter(([, lower, upper]) => lower !== null || upper !== null);
  const tops = known.map(([, lower, upper]) => upper ?? lower).filter((value) => value !== null);
  if (!tops.length) return element('p', { class: 'note' }, 'The chart begins with the first image that is found.');
  const first = known.find(([, , upper]) => upper !== null);
  // The first image is often far off: the chart shows what matters, up to three times the last one.
  const nearest = known.at(-1)[2] ?? Infinity;
  const high = 1.15 * Math.max(first ? Math.min(first[2], 3 * nearest) : 0, ...known.map(([, lower]) => lower ?? 0)) || 1;
  const end = Math.max(seconds ?? 0, known.at(-1)[0], 0.1);
  const x = (time) => LEFT + ((WIDTH - LEFT - RIGHT) * time) / end;
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * Math.min(value, high)) / high;
  const lower = steps(known, 1, end, 0);
  const upper = steps(known, 2, end, high);
  const points = (list) => list.map(([time, value]) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const low = known.at(-1)[1];
  const up = known.at(-1)[2];
  const spoken = `${what}: proven at least ${amount(low, 'down')}, found ${amount(up, 'up')}, after ${end.toFixed(1)} seconds`;
  return drawn(
    'svg',
    { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': spoken },
    ...grid(y, high),
    ...axis(x, end),
    text(2, 11, what, 'start'),
    drawn('polygon', { class: 'band tone1', points: points([...upper, ...lower.slice().reverse()]) }),
    drawn('polyline', { class: 'line tone2', points: points(upper) }),
    drawn('polyline', { class: 'line tone1', points: points(lower) }),
    key(WIDTH - RIGHT - 108, up === null ? '' : `found ${amount(up, 'up')}`, 2),
    key(WIDTH - RIGHT, low ? `proven ${amount(low, 'down')}` : '', 1),
  );
}

function steps(known, column, end, unknown) {
  const list = [];
  let value = unknown;
  for (const point of known) {
    list.push([point[0], value]);
    value = point[column] ?? value;
    list.push([point[0], value]);
  }
  list.push([end, value]);
  return list;
}

const text = (x, y, words, anchor) => drawn('text', { x, y, class: 'tick', 'text-anchor': anchor }, words);
const key = (x, words, tone) => drawn('text', { x, y: 11, class: `tick told tone${tone}`, 'text-anchor': 'end' }, words);

function grid(y, high) {
  return [0, 1 / 3, 2 / 3, 1].flatMap((share) => {
    const value = (high / 1.15) * share;
    const line = drawn('line', { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: share ? 'grid' : 'edge' });
    return [line, text(LEFT - 6, y(value) + 3.5, value ? value.toPrecision(2) : '0', 'end')];
  });
}

function axis(x, end) {
  const words = [0, end].map((time, number) => text(x(time), HEIGHT - BOTTOM + 15, time ? `${time.toPrecision(2)}` : '0', number ? 'end' : 'middle'));
  return [...words, text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, 'seconds', 'middle')];
}
