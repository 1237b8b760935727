// Original, adversarial and difference, side by side.

import { figure } from './elements.js';
import { show, showDifference } from './pixels.js';

export class Trio {
  constructor(place) {
    this.original = figure('original', 'The original image');
    this.changed = figure('adversarial', 'The changed image');
    this.difference = figure('difference', 'The pixels that changed: red brighter, blue darker');
    this.place = place;
  }

  show(original, changed, { before, after, final = true }) {
    this.place.replaceChildren(this.original.made, this.changed.made, this.difference.made);
    show(this.original.canvas, original);
    show(this.changed.canvas, changed);
    showDifference(this.difference.canvas, original, changed);
    this.original.words.textContent = `original: ${before}`;
    this.changed.words.textContent = final ? `adversarial: ${after}` : `best so far: ${after}`;
    this.changed.canvas.setAttribute('aria-label', `The changed image, seen as ${after}`);
  }

  clear() {
    this.place.replaceChildren();
  }
}
