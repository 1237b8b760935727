// Is there any image within a radius? Either none can be, proven, or here is one.

import { $, NORM, NORMS, choices } from './elements.js';
import { Asker } from './questions.js';
import { model, models, state } from './state.js';
import { Trio } from './trio.js';

const asker = new Asker($('certify-form'), $('certify-stop'), $('certify-sentence'));
const trio = new Trio($('certify-trio'));
const FURTHEST = { l1: 20, l2: 4, linf: 0.3, l0: 40 };

// The slider is finer near zero, where most verdicts change.
function radius() {
  const norm = $('certify-norm').value;
  const share = (Number($('certify-radius').value) / 100) ** 2;
  if (norm === 'l0') return Math.max(1, Math.round(FURTHEST.l0 * share));
  return Number(Math.max(FURTHEST[norm] * share, FURTHEST[norm] / 1e4).toPrecision(2));
}

function sayRadius() {
  $('certify-radius-said').textContent = `${NORM[$('certify-norm').value]} ${radius()}`;
}

export function fillCertify() {
  choices($('certify-model'), models().filter((one) => one.provable).map((one) => [one.name, one.name]));
}

async function certify() {
  const name = $('certify-model').value;
  if (!state.picture) return asker.say('Draw something first, or choose an image.', true);
  if (!name) return asker.say('Nothing can be proven about the networks that read such images.', true);
  const picture = state.picture;
  const body = { task: 'certify', model: name, picture, norm: $('certify-norm').value, radius: radius(), time_limit: Number($('certify-limit').value) || 20 };
  const names = model(name).class_names;
  trio.clear();
  $('certify-sentence').classList.remove('good');
  asker.say(`Is there any image within ${NORM[body.norm]} ${body.radius}?`);
  await asker.ask([body], {
    question: ({ answer, state: standing, sentence }) => {
      if (standing === 'failed' || standing === 'cancelled') asker.say(sentence, standing === 'failed');
      if (!answer) return;
      asker.say(`${answer.proven ? '✓ ' : ''}${answer.sentence}`);
      $('certify-sentence').classList.toggle('good', answer.outcome === 'robust');
      if (answer.witness) trio.show(picture, answer.witness, { before: names[answer.label], after: names[answer.became] });
    },
    progress: () => {},
    best: (best) => trio.show(picture, best.picture, { before: 'original', after: names[best.label], final: false }),
  });
}

export function openCertify() {
  choices($('certify-norm'), NORMS, 'linf');
  sayRadius();
  for (const place of ['certify-radius', 'certify-norm']) {
    $(place).addEventListener('input', sayRadius);
    $(place).addEventListener('change', () => state.picture && certify());
  }
  $('certify-form').addEventListener('submit', (event) => {
    event.preventDefault();
    certify();
  });
}
