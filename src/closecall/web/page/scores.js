// What each network sees, side by side; each kind of network has a choice of models.

import { $, bars, choices, element, length, percent } from './elements.js';
import { chosen, inLane, state, tell } from './state.js';
import { predictAgain, predictions } from './subject.js';

let cards = {};

export function fillScores() {
  cards = {};
  $('lanes').replaceChildren(
    ...chosen().map(({ lane, title, tone, model }) => {
      const select = element('select', { 'aria-label': `Which ${title}`, onchange: () => choose(lane, select.value) });
      choices(select, inLane(lane).map((one) => [one.name, one.name]), model.name);
      const label = element('div', { class: 'big' }, '–');
      const sure = element('div', { class: 'what' });
      const { list, update } = bars(model.class_names, tone, model.kind === 'capsnet' ? length : percent);
      cards[model.name] = { label, sure, update, model };
      const facts = `${model.title}${model.accuracy ? ` · ${(100 * model.accuracy).toFixed(1)} % right` : ''}`;
      return element('article', { class: `card tone${tone}` }, element('div', { class: 'name' }, title, ' ', select), label, sure, list, element('p', { class: 'note' }, facts));
    }),
  );
  showScores();
}

function choose(lane, name) {
  state.lanes[lane] = name;
  tell('models');
  predictAgain();
}

export function showScores() {
  const { list, seconds } = predictions;
  $('took').textContent = list.length ? `Answered in ${Math.max(1, Math.round(1000 * seconds))} ms.` : '';
  for (const { label, sure, update, model } of Object.values(cards)) {
    const found = predictions.list.find((one) => one.model === model.name);
    label.textContent = found ? model.class_names[found.label] : '–';
    const unit = model.kind === 'capsnet' ? 'capsule length' : 'probability';
    sure.textContent = found ? `${unit} ${found.shares[found.label].toFixed(3)}` : 'nothing to see yet';
    update(found?.shares, found?.label);
  }
}
