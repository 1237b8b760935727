// What the page is about: the image, the models that read images like it, and who wants to know.

import { get } from './api.js';

export const state = { overview: null, shape: null, picture: null, origin: null, lanes: {}, galleries: {} };

const watchers = {};
export const on = (what, watcher) => (watchers[what] ??= []).push(watcher);
export const tell = (what) => (watchers[what] ?? []).forEach((watcher) => watcher());

export const LANES = [
  ['dnn', 'DNN', 1],
  ['cnn', 'CNN', 2],
  ['capsnet', 'CapsNet', 3],
  ['onnx', 'Your model', 4],
];
const laneOf = (model) => (model.kind.startsWith('cnn') ? 'cnn' : model.kind);
const PAIRS = 'multimnist';

export const same = (one, other) => String(one) === String(other);
export const model = (name) => state.overview.models.find((one) => one.name === name);

// The models that read images of the shape at hand; those for pairs of digits read another kind of image.
export const models = () => state.overview.models.filter((one) => same(one.shape, state.shape) && one.dataset !== PAIRS);
export const pairsModel = () => state.overview.models.find((one) => one.dataset === PAIRS);
export const inLane = (lane) => models().filter((one) => laneOf(one) === lane);

// One model of each kind, in the order in which they are shown: { lane, title, tone, model }.
export const chosen = () =>
  LANES.filter(([lane]) => inLane(lane).length).map(([lane, title, tone]) => ({ lane, title, tone, model: laneModel(lane) }));

function laneModel(lane) {
  const there = inLane(lane);
  const usual = there.find((one) => state.overview.defaults.includes(one.name)) ?? there[0];
  return there.find((one) => one.name === state.lanes[lane]) ?? usual;
}

export function shapes() {
  const found = new Map();
  for (const one of state.overview.models) {
    if (one.dataset !== PAIRS) found.set(String(one.shape), one.shape);
  }
  return [...found.values()];
}

export const galleryOf = (shape) => ({ '1,28,28': 'mnist', '3,32,32': 'cifar10' })[String(shape)];

export async function gallery(name) {
  state.galleries[name] ??= await get(`/api/galleries/${name}`);
  return state.galleries[name];
}

export async function loadOverview() {
  state.overview = await get('/api/overview');
  state.shape ??= state.overview.models.find((one) => one.name === state.overview.defaults[0])?.shape ?? state.overview.models[0].shape;
}

export function setPicture(picture, origin) {
  state.picture = picture;
  state.origin = origin;
  tell('picture');
}

export function setShape(shape) {
  if (same(shape, state.shape)) return;
  state.shape = shape;
  state.picture = null;
  state.origin = null;
  tell('shape');
}
