// Pictures as the API has them, as numbers, and on a canvas.

export function decode(picture) {
  const bytes = Uint8Array.from(atob(picture.pixels), (letter) => letter.charCodeAt(0));
  if (picture.type === 'float32') return new Float32Array(bytes.buffer);
  return Float32Array.from(bytes, (value) => Math.fround(value / 255));
}

function base64(bytes) {
  let text = '';
  for (let start = 0; start < bytes.length; start += 8192) {
    text += String.fromCharCode(...bytes.subarray(start, start + 8192));
  }
  return btoa(text);
}

export const fromBytes = (bytes, shape) => ({ shape, type: 'uint8', pixels: base64(bytes) });

export const fromFloats = (values, shape) => ({
  shape,
  type: 'float32',
  pixels: base64(new Uint8Array(Float32Array.from(values).buffer)),
});

// The bytes of a picture; one in float32 is rounded to them.
export const toBytes = (picture) => Uint8Array.from(decode(picture), (value) => Math.round(255 * value));

export function show(canvas, picture) {
  const [channels, height, width] = picture.shape;
  const values = decode(picture);
  const size = height * width;
  draw(canvas, width, height, (place) => {
    const parts = [0, 1, 2].map((part) => 255 * values[(channels === 3 ? part : 0) * size + place]);
    return [...parts, 255];
  });
}

const RISEN = [214, 69, 65];
const FALLEN = [58, 124, 188];

// Red where pixels rose, blue where they fell, clear where nothing changed; as in the reports.
export function showDifference(canvas, before, after) {
  const [channels, height, width] = before.shape;
  const from = decode(before);
  const to = decode(after);
  const size = height * width;
  const changes = Array.from({ length: size }, (_, place) => {
    let most = 0;
    for (let part = 0; part < channels; part++) {
      const change = to[part * size + place] - from[part * size + place];
      if (Math.abs(change) > Math.abs(most)) most = change;
    }
    return most;
  });
  const largest = Math.max(...changes.map(Math.abs)) || 1;
  draw(canvas, width, height, (place) => {
    const change = changes[place];
    return [...(change > 0 ? RISEN : FALLEN), 255 * Math.sqrt(Math.abs(change) / largest)];
  });
}

// Two grey pictures in one: the first red, the second green.
export function showTwo(canvas, first, second) {
  const [, height, width] = first.shape;
  const red = decode(first);
  const green = decode(second);
  draw(canvas, width, height, (place) => [255 * red[place], 255 * green[place], 0, 255]);
}

export function draw(canvas, width, height, colour) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext('2d');
  const image = context.createImageData(width, height);
  for (let place = 0; place < width * height; place++) image.data.set(colour(place), 4 * place);
  context.putImageData(image, 0, 0);
}

// Some of the way from one picture to another, or beyond it, within 0 and 1.
export function between(from, to, share) {
  const first = decode(from);
  const last = decode(to);
  const mixed = first.map((value, place) => Math.min(1, Math.max(0, value + share * (last[place] - value))));
  return fromFloats(mixed, from.shape);
}
