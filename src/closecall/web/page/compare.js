// The same image under each network: which is fooled first, and what of it is proven.

import { $, NORM, NORMS, amount, choices, element, figure } from './elements.js';
import { show } from './pixels.js';
import { Asker, waitingSentence } from './questions.js';
import { chosen, state } from './state.js';

const asker = new Asker($('compare-form'), $('compare-stop'), $('compare-sentence'));

export function fillCompare() {
  $('compare-ranges').hidden = true;
  $('compare-ranges').replaceChildren();
  $('compare-shots').replaceChildren();
  $('compare-sentence').textContent = '';
}

async function compare() {
  if (!state.picture) return asker.say('Draw something first, or choose an image.', true);
  const picture = state.picture;
  const norm = $('compare-norm').value;
  const limit = Number($('compare-limit').value) || 20;
  const rows = chosen().map((lane) => ({ ...lane, lower: 0, upper: null, over: false, label: null }));
  $('compare-shots').replaceChildren(...rows.map((row) => shot(row)));
  const redraw = () => showRanges(rows, norm);
  asker.say('Asking each of them…');
  redraw();
  await asker.ask(rows.map(({ model }) => ({ task: 'nearest', model: model.name, picture, norm, time_limit: limit })), {
    question: ({ answer, state: standing, position, sentence, best }, number) => {
      const row = rows[number];
      if (standing === 'waiting') row.say(waitingSentence(position), false);
      if (standing === 'running') row.say('Searching…', false);
      if (best) row.show(best.picture, best.label);
      if (answer) {
        Object.assign(row, { over: true, lower: answer.lower ?? 0, upper: answer.distance, proven: answer.proven, label: answer.label, became: answer.became });
        if (answer.witness) row.show(answer.witness, answer.became);
        row.say(answer.sentence, answer.proven);
      } else if (standing === 'failed' || standing === 'cancelled') {
        row.over = true;
        row.say(sentence, false);
      }
      redraw();
      sum(rows, norm);
    },
    progress: ({ lower, upper }, number) => {
      Object.assign(rows[number], { lower: lower ?? 0, upper });
      redraw();
    },
    best: (best, number) => rows[number].show(best.picture, best.label),
  });
}

function shot(row) {
  const { made, canvas, words } = figure('nothing found yet', `What changes the mind of ${row.model.name}`);
  const said = element('p', { class: 'proof' });
  row.show = (picture, label) => {
    show(canvas, picture);
    words.textContent = `seen as ${row.model.class_names[label]}`;
  };
  row.say = (sentence, proven) => {
    said.textContent = sentence;
    said.classList.toggle('closed', proven);
  };
  return element('article', { class: `card tone${row.tone} portrait` }, element('div', { class: 'name' }, `${row.title} · ${row.model.name}`), made, said);
}

function showRanges(rows, norm) {
  const furthest = 1.1 * Math.max(...rows.map(({ lower, upper }) => upper ?? lower), 1e-9);
  const place = $('compare-ranges');
  place.hidden = false;
  place.replaceChildren(
    ...rows.flatMap(({ title, tone, lower, upper, model }) => {
      const bar = element('i', { class: upper === null ? 'open' : model.provable ? '' : 'bounded' });
      bar.style.left = `${(100 * lower) / furthest}%`;
      bar.style.width = `${(100 * ((upper ?? furthest) - lower)) / furthest}%`;
      const far = upper === null ? `${amount(lower, 'down')} or more` : model.provable ? `${amount(lower, 'down')} to ${amount(upper, 'up')}` : `at most ${amount(upper, 'up')}`;
      return [
        element('span', { class: 'who' }, title),
        element('span', { class: `track tone${tone}`, role: 'img', 'aria-label': `${title}: ${NORM[norm]} ${far}` }, bar),
        element('span', { class: 'far' }, far),
      ];
    }),
  );
}

// Who is fooled first is proven when one's image is nearer than anything that could fool the others.
function sum(rows, norm) {
  const found = rows.filter(({ upper }) => upper !== null).sort((one, other) => one.upper - other.upper);
  if (!rows.every(({ over }) => over)) return;
  if (!found.length) return asker.say('None of them was fooled in this time.');
  const first = found[0];
  const rest = rows.filter((row) => row !== first);
  const proven = rest.filter(({ model, lower }) => model.provable && lower >= first.upper).map(({ title }) => title);
  const open = rest.filter((row) => !proven.includes(row.title)).map(({ title }) => title);
  const against = [proven.length && `proven against the ${proven.join(' and the ')}`, open.length && `not proven against the ${open.join(' and the ')}`];
  const clause = against.filter(Boolean).join(', ');
  asker.say(`The ${first.title} is fooled first, at ${NORM[norm]} ${amount(first.upper, 'up')}${clause ? `: ${clause}` : ''}.`);
}

export function openCompare() {
  choices($('compare-norm'), NORMS, 'l1');
  $('compare-form').addEventListener('submit', (event) => {
    event.preventDefault();
    compare();
  });
}
