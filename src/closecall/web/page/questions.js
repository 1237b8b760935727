// Questions that take their time: asked, followed by server-sent events, and stopped.

import { get, post } from './api.js';

// Ask some questions and follow them on one stream. `on` has `question`, `progress`, `best` and `lost`; each of the
// first three gets the event and the number of the question that it is about. Gives { stop, done }.
export async function ask(bodies, on) {
  const asked = [];
  for (const body of bodies) asked.push(await post('/api/questions', body));
  return follow(asked.map((question) => question.id), on);
}

function follow(ids, on) {
  const address = `/api/events?${ids.map((id) => `question=${encodeURIComponent(id)}`).join('&')}`;
  const source = new EventSource(address);
  let finish;
  let over = false;
  const done = new Promise((resolve) => (finish = resolve));
  const end = () => {
    if (over) return;
    over = true;
    source.close();
    finish();
  };
  for (const kind of ['question', 'progress', 'best']) {
    source.addEventListener(kind, (event) => {
      const what = JSON.parse(event.data);
      on[kind]?.(what, ids.indexOf(what.id));
    });
  }
  source.addEventListener('end', end);
  source.addEventListener('error', async () => {
    if (over) return;
    if (source.readyState !== EventSource.CLOSED) {
      on.lost?.('The server does not answer: trying again…');
      return;
    }
    const known = await get(`/api/questions/${ids[0]}`).then(() => true, () => false);
    on.lost?.(known ? 'The connection was lost: ask again.' : 'The server was restarted, and this question is gone: ask it again.');
    end();
  });
  const stop = () => Promise.allSettled(ids.map((id) => post(`/api/questions/${id}/stop`)));
  return { ids, stop, done, leave: () => (stop(), end()) };
}

// One question at a time for a form: the button, Stop, and what is said while it waits.
export class Asker {
  constructor(form, stopButton, sentence) {
    Object.assign(this, { form, stopButton, sentence, run: null, count: 0 });
    stopButton.addEventListener('click', () => this.run?.stop());
  }

  async ask(bodies, on) {
    this.run?.leave();
    const mine = ++this.count;
    this.busy(true);
    this.sentence.classList.remove('wrong');
    const heed = (handler) => (...given) => mine === this.count && handler?.(...given);
    try {
      const run = await ask(bodies, {
        question: heed((question, number) => {
          if (question.state === 'waiting' && bodies.length === 1) this.say(waitingSentence(question.position));
          on.question(question, number);
        }),
        progress: heed(on.progress),
        best: heed(on.best),
        lost: heed((why) => (on.lost?.(), this.say(why, true))),
      });
      if (mine !== this.count) return run.leave();
      this.run = run;
      await run.done;
    } catch (error) {
      if (mine === this.count) this.say(error.message, true);
    }
    if (mine === this.count) {
      this.run = null;
      this.busy(false);
    }
  }

  // What changes all the time is not read aloud.
  sayQuietly(sentence) {
    this.sentence.setAttribute('aria-live', 'off');
    this.sentence.textContent = sentence;
  }

  say(sentence, wrong = false) {
    this.sentence.setAttribute('aria-live', 'polite');
    this.sentence.textContent = sentence.charAt(0).toUpperCase() + sentence.slice(1);
    this.sentence.hidden = false;
    this.sentence.classList.toggle('wrong', wrong);
  }

  busy(is) {
    this.stopButton.disabled = !is;
    this.form.classList.toggle('busy', is);
    this.form.setAttribute('aria-busy', String(is));
  }
}

export function waitingSentence(position) {
  if (!position) return 'Next in the queue…';
  return `In the queue: ${position} ${position === 1 ? 'question is' : 'questions are'} before this one…`;
}
