// A question in the address: whoever opens it sees the same image and asks the same.

import { fromBytes, toBytes } from './pixels.js';

const urlSafe = (text) => text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const plain = (text) => text.replaceAll('-', '+').replaceAll('_', '/');

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function packed(picture) {
  const small = await through(toBytes(picture), new CompressionStream('deflate-raw'));
  return `${picture.shape.join('x')}.${urlSafe(btoa(String.fromCharCode(...small)))}`;
}

async function unpacked(words) {
  const [sides, content] = words.split('.');
  const shape = sides.split('x').map(Number);
  const small = Uint8Array.from(atob(plain(content)), (letter) => letter.charCodeAt(0));
  const bytes = await through(small, new DecompressionStream('deflate-raw'));
  if (shape.length !== 3 || bytes.length !== shape.reduce((a, b) => a * b)) throw new Error('no image');
  return fromBytes(bytes, shape);
}

// The address of a question; an image of a gallery goes by its number, any other with its pixels.
export async function linkTo(body, origin) {
  const wanted = new URLSearchParams({ model: body.model, target: body.target, norm: body.norm, limit: body.time_limit });
  if (body.cap) wanted.set('cap', body.cap);
  const fromGallery = /^[a-z0-9]+\.\d+$/.test(origin ?? '');
  wanted.set(fromGallery ? 'gallery' : 'image', fromGallery ? origin : await packed(body.picture));
  return `#${body.task}?${wanted}`;
}

// What an address asks: { tab, model, target, norm, cap, limit, gallery or picture }, or null.
export async function readLink(hash) {
  const [tab, query] = hash.replace(/^#/, '').split('?');
  if (!query) return tab ? { tab } : null;
  const wanted = Object.fromEntries(new URLSearchParams(query));
  if (wanted.image) {
    wanted.picture = await unpacked(wanted.image).catch(() => null);
    wanted.broken = !wanted.picture;
  }
  return { tab, ...wanted };
}
