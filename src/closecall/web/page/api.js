// Requests to the server; whatever goes wrong becomes one sentence.

export class Refusal extends Error {
  constructor(sentence, code) {
    super(sentence);
    this.code = code;
  }
}

const listeners = new Set();
export const onConnection = (listener) => listeners.add(listener);
const tellConnection = (reached) => listeners.forEach((listener) => listener(reached));

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    tellConnection(false);
    throw new Refusal('The server does not answer: is it still running?', 0);
  }
  tellConnection(true);
  const body = await response.json().catch(() => ({ error: 'The server gave an answer that cannot be read.' }));
  if (!response.ok) throw new Refusal(body.error ?? 'The server refused this.', response.status);
  return body;
}

export const get = (path) => request(path);

export const post = (path, body = {}) =>
  request(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });

export const send = (path, file) =>
  request(path, { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: file });

// Does the newest of many wishes, one at a time: those that were overtaken are never sent.
export function latest(work) {
  let running = false;
  let waiting = null;
  return async function wish(...given) {
    if (running) {
      waiting = given;
      return;
    }
    running = true;
    try {
      await work(...given);
    } finally {
      running = false;
      if (waiting) {
        const next = waiting;
        waiting = null;
        wish(...next);
      }
    }
  };
}
