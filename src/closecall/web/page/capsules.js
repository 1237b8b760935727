// Into a capsule network: sixteen numbers to turn, who votes for whom, and two digits pulled apart.

import { latest, post } from './api.js';
import { $, choices, element, figure } from './elements.js';
import { draw, show, showTwo } from './pixels.js';
import { gallery, inLane, model, pairsModel, state } from './state.js';

const FURTHEST = 0.6;
const given = figure('your image', 'Your image');
const restored = figure('reconstruction', 'What the decoder makes of the capsule');
const overlapping = ['both', 'in two colours', '', ''].map((words) => figure(words, words));

let found = null; // what the network said of the image
let vector = []; // the capsule as it is turned now

export function fillCapsules() {
  const there = inLane('capsnet');
  $('capsules-none').hidden = there.length > 0;
  $('capsules-all').hidden = there.length === 0;
  choices($('capsules-model'), there.map((one) => [one.name, one.name]));
  found = null;
  if (!$('panel-capsules').hidden) lookAtCapsules();
}

export const lookAtCapsules = latest(async () => {
  if (!state.picture || $('capsules-all').hidden) return;
  const name = $('capsules-model').value;
  found = await post('/api/capsules', { model: name, picture: state.picture }).catch((error) => ({ error: error.message }));
  if (found.error) return void ($('pairs-sentence').textContent = found.error);
  const names = model(name).class_names;
  const words = found.lengths.map((length, label) => [label, `${names[label]} (length ${length.toFixed(2)})`]);
  choices($('capsules-label'), words, found.label);
  show(given.canvas, state.picture);
  $('capsules-pair').replaceChildren(given.made, restored.made);
  $('capsules-iteration').max = $('capsules-iteration').value = Math.max(1, found.routing.length);
  startCapsule();
  showRouting();
  pullApart();
});

function startCapsule() {
  const label = Number($('capsules-label').value);
  vector = [...found.capsules[label]];
  $('capsules-sliders').replaceChildren(...vector.map((value, number) => slider(value, number)));
  decodeCapsule();
}

const signed = (value) => value.toFixed(2).replace('-', '−');

function slider(value, number) {
  const input = element('input', { type: 'range', min: -FURTHEST, max: FURTHEST, step: 0.01, 'aria-label': `Dimension ${number + 1}` });
  input.value = value;
  const output = element('output', {}, signed(value));
  input.addEventListener('input', () => {
    vector[number] = Number(input.value);
    output.textContent = signed(vector[number]);
    decodeCapsule();
  });
  return element('label', { class: 'slide' }, element('span', {}, String(number + 1)), input, output);
}

const decodeCapsule = latest(async () => {
  const label = Number($('capsules-label').value);
  const began = performance.now();
  const picture = await post('/api/capsules/decode', { model: $('capsules-model').value, label, capsule: vector }).catch(() => null);
  if (!picture) return;
  show(restored.canvas, picture);
  restored.canvas.dataset.milliseconds = (performance.now() - began).toFixed(1);
});

function showRouting() {
  const iteration = found?.routing?.[Number($('capsules-iteration').value) - 1];
  $('capsules-iteration-said').textContent = iteration ? `${$('capsules-iteration').value} of ${found.routing.length}` : 'this network does not route by iterations';
  if (!iteration) return $('capsules-routing').replaceChildren();
  const names = model($('capsules-model').value).class_names;
  const most = Math.max(...found.routing.flatMap(({ couplings }) => couplings.flat()));
  const longest = iteration.lengths.indexOf(Math.max(...iteration.lengths));
  const ink = getComputedStyle(document.documentElement).getPropertyValue('--one').trim();
  const colour = [1, 3, 5].map((start) => parseInt(ink.slice(start, start + 2), 16));
  $('capsules-routing').replaceChildren(
    ...names.map((name, label) => {
      const length = iteration.lengths[label].toFixed(2);
      const { made, canvas, words } = figure('', `Votes for ${name}, whose capsule has length ${length}, by place on the image`);
      draw(canvas, iteration.side, iteration.side, (place) => [...colour, (255 * iteration.couplings[label][place]) / most]);
      words.append(element('b', {}, name), ` ${length}`);
      made.classList.toggle('first', label === longest);
      return made;
    }),
  );
}

const pullApart = latest(async () => {
  const network = pairsModel();
  const second = (await gallery('mnist'))[Number($('pairs-second').value)];
  if (!network || !state.picture || state.picture.shape[0] !== 1 || !second) return;
  const apart = [Number($('pairs-down').value), Number($('pairs-right').value)];
  const body = { model: network.name, parts: [state.picture, second.picture], apart };
  const seen = await post('/api/capsules/overlapping', body).catch((error) => ({ error: error.message }));
  if (seen.error) return void ($('pairs-sentence').textContent = seen.error);
  const [first, other] = seen.seen;
  show(overlapping[0].canvas, seen.picture);
  showTwo(overlapping[1].canvas, first.picture, other.picture);
  [first, other].forEach((part, number) => {
    show(overlapping[2 + number].canvas, part.picture);
    overlapping[2 + number].words.textContent = `seen as ${part.label}`;
    overlapping[2 + number].canvas.setAttribute('aria-label', `One of the two, seen as ${part.label}`);
  });
  $('pairs-shown').replaceChildren(...overlapping.map(({ made }) => made));
  $('pairs-sentence').textContent = `Seen: ${first.label} and ${other.label} (lengths ${first.length.toFixed(2)} and ${other.length.toFixed(2)}).`;
});

export async function openCapsules() {
  $('capsules-model').addEventListener('change', lookAtCapsules);
  $('capsules-label').addEventListener('change', startCapsule);
  $('capsules-reset').addEventListener('click', () => found && startCapsule());
  $('capsules-iteration').addEventListener('input', showRouting);
  for (const place of ['pairs-second', 'pairs-down', 'pairs-right']) $(place).addEventListener('input', pullApart);
  const digits = await gallery('mnist');
  choices($('pairs-second'), digits.flatMap((entry, number) => (entry.odd ? [] : [[number, `a ${entry.label} (test image ${entry.index})`]])), 20);
}
