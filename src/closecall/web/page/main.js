// The page: tabs, and what happens when the image, the models or the address change.

import { onConnection } from './api.js';
import { fillCapsules, lookAtCapsules, openCapsules } from './capsules.js';
import { fillCertify, openCertify } from './certify.js';
import { fillCompare, openCompare } from './compare.js';
import { $ } from './elements.js';
import { fillIdeal, openIdeal } from './ideal.js';
import { fillFrom, fillNearest, findNearest, openNearest } from './nearest.js';
import { readLink } from './permalink.js';
import { fillScores, showScores } from './scores.js';
import { galleryOf, loadOverview, model, on, setShape, state } from './state.js';
import { choose, chooseFromGallery, newShape, openSubject, predictAgain, sayPredictions } from './subject.js';

const tabs = [...document.querySelectorAll('[role="tab"]')];

function openTab(tab, focus = false) {
  for (const one of tabs) {
    const chosen = one === tab;
    one.setAttribute('aria-selected', String(chosen));
    one.tabIndex = chosen ? 0 : -1;
    $(one.getAttribute('aria-controls')).hidden = !chosen;
  }
  if (focus) tab.focus();
  if (tab.id === 'tab-capsules') lookAtCapsules();
}

function openTabs() {
  const ways = { ArrowRight: 1, ArrowLeft: -1 };
  for (const tab of tabs) {
    tab.addEventListener('click', () => openTab(tab));
    tab.addEventListener('keydown', ({ key }) => {
      const last = tabs.length - 1;
      const index = tabs.indexOf(tab);
      const next = { Home: 0, End: last }[key] ?? (key in ways ? (index + ways[key] + tabs.length) % tabs.length : null);
      if (next !== null) openTab(tabs[next], true);
    });
  }
  openTab(tabs[0]);
}

function fillAll() {
  fillScores();
  fillNearest();
  fillCertify();
  fillIdeal();
  fillCapsules();
  fillCompare();
}

async function heedAddress() {
  const wanted = await readLink(location.hash);
  const tab = tabs.find((one) => one.id === `tab-${wanted?.tab}`);
  if (!tab) return;
  openTab(tab);
  if (!wanted.model) return;
  const about = model(wanted.model);
  const said = !about ? `There is no model ${wanted.model} here.` : wanted.broken ? 'The image in this address cannot be read.' : '';
  if (said) {
    $('nearest-sentence').textContent = said;
    return;
  }
  setShape(about.shape);
  if (wanted.picture) await choose(wanted.picture, 'link', 'The image of a link.');
  else await chooseFromGallery(...splitGallery(wanted.gallery));
  fillFrom(wanted);
  if (wanted.tab === 'nearest') await findNearest();
}

function splitGallery(words) {
  const [name, number] = (words ?? '').split('.');
  return [name === galleryOf(state.shape) ? name : galleryOf(state.shape), Number(number)];
}

function watch() {
  on('predictions', () => (showScores(), sayPredictions()));
  on('picture', () => !$('panel-capsules').hidden && lookAtCapsules());
  on('models', () => (fillAll(), predictAgain()));
  on('shape', () => (fillAll(), newShape()));
  onConnection((reached) => ($('server').textContent = reached ? '' : 'The server does not answer.'));
  addEventListener('hashchange', heedAddress);
}

async function open() {
  await loadOverview();
  watch();
  openTabs();
  await openSubject();
  for (const part of [openNearest, openCertify, openIdeal, openCapsules, openCompare]) part();
  fillAll();
  await heedAddress();
  document.body.dataset.ready = 'yes';
}

open().catch((error) => ($('server').textContent = error.message));
