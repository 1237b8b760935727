// The nearest image that is seen otherwise: live, with its proof, to fade into and to take home.

import { latest, post } from './api.js';
import { intervalChart } from './chart.js';
import { $, NORMS, STAGES, amount, bars, choices, element, length, percent } from './elements.js';
import { linkTo } from './permalink.js';
import { between, show } from './pixels.js';
import { Asker } from './questions.js';
import { model, models, state } from './state.js';
import { predictions } from './subject.js';
import { Trio } from './trio.js';

const asker = new Asker($('nearest-form'), $('nearest-stop'), $('nearest-sentence'));
const trio = new Trio($('nearest-trio'));
const TICK = 500; // milliseconds between two looks at the clock
let shown = null; // what the result on show is about

export function fillNearest() {
  choices($('nearest-model'), models().map((one) => [one.name, `${one.name}${one.provable ? '' : ' (nothing provable)'}`]));
  fillTargets();
}

function fillTargets() {
  const names = model($('nearest-model').value)?.class_names ?? [];
  choices($('nearest-target'), [['any', 'anything else'], ...names.map((name, number) => [number, name])]);
}

function wish() {
  const cap = readAmount($('nearest-cap').value);
  const target = $('nearest-target').value;
  return {
    task: 'nearest',
    model: $('nearest-model').value,
    picture: state.picture,
    target: /^\d+$/.test(target) ? Number(target) : target,
    norm: $('nearest-norm').value,
    cap,
    time_limit: Number($('nearest-limit').value) || 60,
  };
}

function readAmount(words) {
  if (!words.trim()) return null;
  const [above, below] = words.replace(',', '.').split('/');
  const value = below === undefined ? Number(above) : Number(above) / Number(below);
  if (!(value > 0)) throw new Error('The most that a pixel may change is a number such as 0.2 or 51/255.');
  return value;
}

export async function findNearest() {
  let body;
  try {
    body = wish();
  } catch (error) {
    return asker.say(error.message, true);
  }
  if (!body.picture) return asker.say('Draw something first, or choose an image.', true);
  begin(body);
  let seconds = 0;
  let trail = [];
  let last = null; // what was told last, and when
  const redraw = () => $('nearest-chart').replaceChildren(intervalChart(trail, { norm: body.norm, seconds }));
  const ticking = setInterval(() => {
    if (!last) return;
    seconds = last.seconds + (performance.now() - last.at) / 1000;
    asker.sayQuietly(progressSentence({ ...last, seconds }));
    redraw();
  }, TICK);
  await asker.ask([body], {
    question: (question) => {
      trail = question.trail;
      if (question.state !== 'running') last = null;
      if (question.best && !question.answer) showBest(question.best);
      if (question.state === 'running') asker.say('Searching…');
      if (question.state === 'failed' || question.state === 'cancelled') asker.say(question.sentence, question.state === 'failed');
      if (question.answer) finish(question, (seconds = question.answer.seconds));
      if (question.answer) trail = closed(trail, question.answer);
      redraw();
    },
    progress: (told) => {
      seconds = told.seconds;
      trail.push([told.seconds, told.lower, told.upper]);
      last = { ...told, at: performance.now() };
      asker.sayQuietly(progressSentence(told));
      redraw();
    },
    best: showBest,
    lost: () => (last = null),
  });
  clearInterval(ticking);
}

// The answer's own interval ends the trail: a witness that was replayed may be a hair further.
const closed = (trail, answer) => [...trail, [answer.seconds, answer.lower, answer.distance]];

function progressSentence({ lower, upper, nodes, stage, seconds }) {
  const doing = STAGES[stage] ? ` · ${STAGES[stage]}` : '';
  const counted = nodes ? ` · ${nodes.toLocaleString('en')} nodes` : '';
  return `${amount(lower, 'down')} ≤ distance ≤ ${amount(upper, 'up')}${doing}${counted} · ${seconds.toFixed(0)} s`;
}

function begin(body) {
  const about = model(body.model);
  shown = { body, original: body.picture, witness: null, names: about.class_names, unit: about.kind, label: null };
  trio.clear();
  $('nearest-result').hidden = false;
  for (const place of ['nearest-chart', 'nearest-scores', 'nearest-files']) $(place).replaceChildren();
  $('nearest-notes').textContent = '';
  $('nearest-fade-label').hidden = true;
  $('nearest-result').classList.remove('over');
  asker.say('Asking…');
  showBefore(shown);
}

// What the model sees in the original: known if it is among those on show, else asked for.
async function showBefore(mine) {
  const { body } = mine;
  let known = predictions.list.find((one) => one.model === body.model);
  if (!known) {
    showScores(null, null, null, null);
    const found = await post('/api/predict', { picture: body.picture, models: [body.model] }).catch(() => null);
    known = found?.predictions[0];
  }
  if (!known || mine !== shown || mine.before) return;
  Object.assign(mine, { label: known.label, before: known.shares });
  showScores(mine.before, mine.label, null, null);
}

function showBest(best) {
  const { names, original, label } = shown;
  trio.show(original, best.picture, { before: label === null ? '?' : names[label], after: names[best.label], final: false });
  showScores(shown.before, label, best.shares, best.label);
}

function showScores(before, label, after, became) {
  const place = $('nearest-scores');
  if (!place.children.length) {
    const write = shown.unit === 'capsnet' ? length : percent;
    const [first, second] = [bars(shown.names, 1, write), bars(shown.names, 2, write)];
    place.replaceChildren(element('div', {}, element('b', {}, 'before'), first.list), element('div', {}, element('b', {}, 'after'), second.list));
    place.update = (...given) => (first.update(given[0], given[1]), second.update(given[2], given[3]));
  }
  place.update(before, label, after, became);
}

function finish(question) {
  const { answer } = question;
  const { names, original, body } = shown;
  $('nearest-result').classList.add('over');
  asker.say(`${answer.proven ? '✓ ' : ''}${answer.sentence}`);
  $('nearest-notes').textContent = [...answer.notes, `${answer.seconds.toFixed(1)} s, ${answer.nodes.toLocaleString('en')} nodes.`].join(' ');
  shown.label = answer.label;
  shown.before = answer.shares_before;
  showScores(answer.shares_before, answer.label, answer.shares_after, answer.became);
  offerFiles(question.id, answer.files, body);
  if (!answer.witness) return trio.clear();
  shown.witness = answer.witness;
  trio.show(original, answer.witness, { before: names[answer.label], after: names[answer.became] });
  $('nearest-fade-label').hidden = false;
  $('nearest-fade').value = 100;
  fade();
}

const FILES = { 'witness.png': 'PNG', 'witness.npy': '.npy', 'verdict.json': 'Verdict', 'answer.zip': 'All (.zip)' };

function offerFiles(id, files, body) {
  const links = Object.entries(FILES)
    .filter(([name]) => files.includes(name))
    .map(([name, words]) => element('a', { class: 'button', href: `/api/questions/${id}/files/${name}`, download: name }, words));
  const link = element('button', { type: 'button', onclick: () => copyLink(body, link) }, 'Copy link');
  $('nearest-files').replaceChildren(...links, link);
}

async function copyLink(body, button) {
  const address = await linkTo(body, state.origin);
  history.replaceState(null, '', address);
  button.textContent = await navigator.clipboard.writeText(location.href).then(() => 'Copied', () => 'It is in the address bar');
}

const fade = latest(async () => {
  if (!shown?.witness) return;
  const share = Number($('nearest-fade').value) / 100;
  const mixed = between(shown.original, shown.witness, share);
  show(trio.changed.canvas, mixed);
  const { names, body } = shown;
  const found = await post('/api/predict', { picture: mixed, models: [body.model] }).catch(() => null);
  if (!found || body !== shown.body) return;
  const [{ label, shares }] = found.predictions;
  const where = share === 0 ? 'the original' : share === 1 ? 'the adversarial' : `${Math.round(100 * share)} % of the way`;
  $('nearest-fade-said').textContent = `${where}: ${names[label]}`;
  trio.changed.words.textContent = share === 1 ? `adversarial: ${names[label]}` : `${Math.round(100 * share)} %: ${names[label]}`;
  showScores(shown.before, shown.label, shares, label);
});

export function fillFrom(wanted) {
  if (wanted.model) $('nearest-model').value = wanted.model;
  fillTargets();
  if (wanted.target) $('nearest-target').value = wanted.target;
  if (wanted.norm) $('nearest-norm').value = wanted.norm;
  $('nearest-cap').value = wanted.cap ?? '';
  if (wanted.limit) $('nearest-limit').value = wanted.limit;
}

export function openNearest() {
  choices($('nearest-norm'), NORMS, 'l1');
  $('nearest-model').addEventListener('change', fillTargets);
  $('nearest-fade').addEventListener('input', fade);
  $('nearest-form').addEventListener('submit', (event) => {
    event.preventDefault();
    findNearest();
  });
}
