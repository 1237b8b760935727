// The image that everything is about: drawn, chosen from a gallery, or uploaded; and what the networks see in it.

import { latest, post, send } from './api.js';
import { $, choices, element } from './elements.js';
import { fromBytes, show } from './pixels.js';
import { chosen, gallery, galleryOf, loadOverview, same, setPicture, setShape, shapes, state, tell } from './state.js';

const SENT_SIDE = 140; // pixels of a drawing as it is sent; the server scales it as MNIST's digits were
const PEN = 22;

const canvas = $('canvas');
const context = canvas.getContext('2d', { willReadFrequently: true });
let drawing = false; // whether the canvas holds strokes, and not an image that was chosen
let last = null;

export const predictions = { list: [], seconds: null };

function clearCanvas() {
  context.fillStyle = '#000';
  context.fillRect(0, 0, canvas.width, canvas.height);
}

export function clear() {
  clearCanvas();
  drawing = false;
  predictions.list = [];
  $('hint').hidden = false;
  $('origin').textContent = '';
  $('seen').textContent = '';
  markChosen(-1);
  setPicture(null, null);
  show($('taken'), fromBytes(new Uint8Array(state.shape.reduce((a, b) => a * b)), state.shape));
  tell('predictions');
}

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [((event.clientX - box.left) * canvas.width) / box.width, ((event.clientY - box.top) * canvas.height) / box.height];
}

function stroke(from, to) {
  context.strokeStyle = '#fff';
  context.lineWidth = PEN;
  context.lineCap = context.lineJoin = 'round';
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
}

function begin(event) {
  if (event.button !== 0) return;
  canvas.setPointerCapture(event.pointerId);
  if (!drawing) {
    clearCanvas();
    markChosen(-1);
    $('origin').textContent = '';
    drawing = true;
  }
  $('hint').hidden = true;
  last = place(event);
  stroke(last, [last[0] + 0.1, last[1]]);
  event.preventDefault();
}

function go(event) {
  if (!last) return;
  const here = place(event);
  stroke(last, here);
  last = here;
  readDrawing();
}

function finish() {
  if (!last) return;
  last = null;
  readDrawing();
}

const small = element('canvas', { width: SENT_SIDE, height: SENT_SIDE });

function drawingBytes() {
  const sheet = small.getContext('2d', { willReadFrequently: true });
  sheet.drawImage(canvas, 0, 0, SENT_SIDE, SENT_SIDE);
  const { data } = sheet.getImageData(0, 0, SENT_SIDE, SENT_SIDE);
  return Uint8Array.from({ length: SENT_SIDE * SENT_SIDE }, (_, number) => data[4 * number]);
}

const readDrawing = latest(async () => {
  if (!drawing) return;
  const picture = fromBytes(drawingBytes(), [1, SENT_SIDE, SENT_SIDE]);
  const found = await predict(picture, true);
  if (found && drawing) setPicture(found.picture, 'drawing');
});

// What the models at hand see; with `centre`, in a drawing.
async function predict(picture, centre = false) {
  const names = chosen().map((lane) => lane.model.name);
  if (!names.length) return null;
  const began = performance.now();
  try {
    const found = await post('/api/predict', { picture, models: names, centre });
    predictions.list = found.predictions;
    predictions.seconds = (performance.now() - began) / 1000;
    show($('taken'), found.picture);
    tell('predictions');
    return found;
  } catch (error) {
    $('seen').textContent = error.message;
    return null;
  }
}

export const predictAgain = latest(async () => {
  if (state.picture) await predict(state.picture);
});

// Show an image that was not drawn, and ask what is seen in it.
export async function choose(picture, origin, said = '') {
  drawing = false;
  $('hint').hidden = true;
  show(small, picture);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  small.width = small.height = SENT_SIDE;
  $('origin').textContent = said;
  setPicture(picture, origin);
  await predictAgain();
}

function markChosen(number) {
  [...$('gallery').children].forEach((thumb, index) => thumb.setAttribute('aria-pressed', String(index === number)));
}

const named = (label) => chosen()[0]?.model.class_names[label] ?? String(label);

export async function chooseFromGallery(name, number) {
  const entry = (await gallery(name))[number];
  if (!entry) return;
  markChosen(number);
  const odd = entry.odd ? `, an odd one; networks see ${entry.seen.map(named).join(' or ')}` : '';
  await choose(entry.picture, `${name}.${number}`, `Test image ${entry.index}: ${named(entry.label)}${odd}.`);
}

async function fillGallery() {
  const name = galleryOf(state.shape);
  const thumbs = name ? await gallery(name) : [];
  if (galleryOf(state.shape) !== name) return;
  $('gallery').classList.toggle('colour', name === 'cifar10');
  $('gallery').replaceChildren(
    ...thumbs.map((entry, number) => {
      const sheet = element('canvas', { 'aria-hidden': 'true' });
      show(sheet, entry.picture);
      const spoken = `${named(entry.label)}${entry.odd ? ', an odd one' : ''}, test image ${entry.index}`;
      return element('button', { type: 'button', 'aria-label': spoken, title: spoken, 'aria-pressed': 'false', onclick: () => chooseFromGallery(name, number) }, sheet);
    }),
  );
}

async function upload(event) {
  const file = event.target.files[0];
  event.target.value = '';
  if (!file) return;
  try {
    if (file.size > state.overview.limits.picture_bytes) throw new Error(`A picture has at most ${Math.round(state.overview.limits.picture_bytes / 2 ** 20)} MB here.`);
    const picture = await send(`/api/pictures?shape=${state.shape}`, file);
    markChosen(-1);
    await choose(picture, 'upload', `Your picture ${file.name}.`);
  } catch (error) {
    $('origin').textContent = error.message;
  }
}

async function addModel(event) {
  const file = event.target.files[0];
  event.target.value = '';
  if (!file) return;
  $('model-said').textContent = 'Reading it…';
  try {
    if (!file.name.toLowerCase().endsWith('.onnx')) throw new Error('A model is an .onnx file: export it to ONNX first.');
    if (file.size > state.overview.limits.model_bytes) throw new Error(`A model has at most ${Math.round(state.overview.limits.model_bytes / 2 ** 20)} MB here.`);
    const added = await send(`/api/models?name=${encodeURIComponent(file.name.slice(-100))}`, file);
    await loadOverview();
    state.lanes.onnx = added.name;
    $('model-said').textContent = `${added.name} is here: images of ${added.shape.join(' × ')}, ${added.classes} classes.`;
    listShapes();
    if (same(added.shape, state.shape)) tell('models');
    else setShape(added.shape);
    $('shapes').value = String(state.shape);
    await predictAgain();
  } catch (error) {
    $('model-said').textContent = error.message;
  }
}

const KNOWN = { '1,28,28': 'digits, 28 × 28', '3,32,32': 'colour pictures, 32 × 32' };
const shapeText = (shape) => KNOWN[String(shape)] ?? `images of ${shape[1]} × ${shape[2]}${shape[0] === 3 ? ' in colour' : ''}`;

export function listShapes() {
  choices($('shapes'), shapes().map((shape) => [String(shape), shapeText(shape)]), String(state.shape));
}

export function sayPredictions() {
  const lanes = chosen();
  const said = predictions.list.map(({ model, label }) => {
    const lane = lanes.find((one) => one.model.name === model);
    return lane && `${lane.title} ${lane.model.class_names[label]}`;
  });
  $('seen').textContent = said.filter(Boolean).join(' · ');
}

export async function newShape() {
  clear();
  $('shapes').value = String(state.shape);
  await fillGallery();
}

export async function openSubject() {
  canvas.addEventListener('pointerdown', begin);
  canvas.addEventListener('pointermove', go);
  for (const kind of ['pointerup', 'pointercancel']) canvas.addEventListener(kind, finish);
  $('clear').addEventListener('click', clear);
  $('upload').addEventListener('change', upload);
  $('model-file').addEventListener('change', addModel);
  $('shapes').addEventListener('change', () => setShape($('shapes').value.split(',').map(Number)));
  listShapes();
  clear();
  await fillGallery();
}
