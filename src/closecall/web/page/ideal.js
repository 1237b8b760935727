// What each network thinks is the best example of a class.

import { $, amount, choices, element, figure } from './elements.js';
import { show } from './pixels.js';
import { Asker, waitingSentence } from './questions.js';
import { chosen } from './state.js';

const asker = new Asker($('ideal-form'), $('ideal-stop'), $('ideal-sentence'));

export function fillIdeal() {
  const names = chosen()[0]?.model.class_names ?? [];
  choices($('ideal-target'), names.map((name, number) => [number, name]), $('ideal-target').value || 3);
  $('ideal-lanes').replaceChildren();
}

async function findIdeal() {
  const target = Number($('ideal-target').value);
  const lanes = chosen();
  const cards = lanes.map((lane) => card(lane, target));
  $('ideal-lanes').replaceChildren(...cards.map(({ made }) => made));
  asker.say('');
  const limit = Number($('ideal-limit').value) || 10;
  const bodies = lanes.map(({ model }) => ({ task: 'ideal', model: model.name, target, time_limit: limit }));
  await asker.ask(bodies, {
    question: (question, number) => cards[number].question(question),
    progress: (told, number) => cards[number].progress(told),
  });
}

function card({ title, tone, model }, target) {
  const { made: shown, canvas } = figure(model.name, `The best ${model.class_names[target]} of ${model.name}`);
  const said = element('p', { class: 'proof', role: 'status' }, '');
  const made = element('article', { class: `card tone${tone} portrait` }, element('div', { class: 'name' }, title), shown, said);
  const question = ({ state, position, answer, sentence }) => {
    if (state === 'waiting') said.textContent = waitingSentence(position);
    if (state === 'running') said.textContent = 'Looking…';
    if (sentence) said.textContent = sentence;
    if (!answer) return;
    show(canvas, answer.witness);
    said.textContent = answer.sentence;
    said.classList.toggle('closed', answer.proven);
  };
  const progress = ({ lower, upper }) => {
    said.textContent = `it leads by ${amount(lower)}, none by more than ${amount(upper, 'up')}`;
  };
  return { made, question, progress };
}

export function openIdeal() {
  $('ideal-form').addEventListener('submit', (event) => {
    event.preventDefault();
    findIdeal();
  });
}
