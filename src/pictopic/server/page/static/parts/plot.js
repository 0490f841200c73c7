// The map: many points on a canvas, drawn at most once a frame.

const TILE = 54; // pixels of a thumbnail; on phones two thirds of it
const MOST_TILES = 160; // thumbnails at a time
const MOST_LOADING = 6;
const MOST_KEPT = 600;
const DISCS_BELOW = 2000; // points in view: beyond, drawing them one by one is slow
const TILES_BELOW = 1500; // points in view: with more, thumbnails would say nothing
const BUCKETS = 64; // a side, to find the nearest point
const MOST_ZOOM = 400;

export class Plot {
  // `data` as the server answers; `look` is {colours, muted, ink, paper}; `thumbnail(id)` an address, or null.
  constructor(canvas, data, { look, thumbnail }) {
    Object.assign(this, { canvas, data, look, thumbnail });
    this.context = canvas.getContext("2d", { alpha: false });
    this.images = new Map();
    this.nLoading = 0;
    this.chosen = new Set();
    this.marked = -1;
    this.placed = new Map(); // thumbnails: where they are and of what
    this.showsMiddle = false;
    this.groups = grouped(data);
    this.buckets = bucketed(data);
    this.frame = 0;
    this.resize();
    this.reset();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.width = clientWidth;
    this.height = clientHeight;
    this.canvas.width = Math.round(clientWidth * this.ratio);
    this.canvas.height = Math.round(clientHeight * this.ratio);
    this.redraw();
  }

  reset() {
    this.zoom = this.leastZoom;
    this.middle = [0.5, 0.5];
    this.redraw();
  }

  get isSmall() {
    return this.width < 600;
  }

  // Thumbnails at the edge need some room, too.
  get leastZoom() {
    return this.isSmall ? 0.78 : 0.86;
  }

  // Pixels of the whole map, whose coordinates are within 0 and 1: it fills the canvas, whatever its shape.
  get across() {
    return this.zoom * this.width;
  }

  get down() {
    return this.zoom * this.height;
  }

  move(dx, dy) {
    const [x, y] = this.middle;
    this.middle = [clamp(x - dx / this.across, 0, 1), clamp(y - dy / this.down, 0, 1)];
    this.redraw();
  }

  // By a factor, so that what is at (px, py) stays there.
  scale(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toMap(px, py);
    this.zoom = clamp(this.zoom * factor, this.leastZoom, MOST_ZOOM);
    this.middle = [
      clamp(x - (px - this.width / 2) / this.across, 0, 1),
      clamp(y - (py - this.height / 2) / this.down, 0, 1),
    ];
    this.redraw();
  }

  toMap(px, py) {
    return [this.middle[0] + (px - this.width / 2) / this.across, this.middle[1] + (py - this.height / 2) / this.down];
  }

  toScreen({ x, y }) {
    return [(x - this.middle[0]) * this.across + this.width / 2, (y - this.middle[1]) * this.down + this.height / 2];
  }

  choose(classes) {
    this.chosen = classes;
    this.redraw();
  }

  mark(point) {
    if (point === this.marked) return;
    this.marked = point;
    this.redraw();
  }

  // The point of the thumbnail there, or else the nearest shown point within some pixels, or -1.
  at(px, py, within) {
    const [x, y] = this.toMap(px, py);
    const tile = this.placed.get(this.cellOf(x, y).key);
    if (tile) return tile.point;
    const [rx, ry] = [within / this.across, within / this.down];
    const [left, right, top, bottom] = [x - rx, x + rx, y - ry, y + ry].map(bucket);
    let best = -1;
    let least = within * within;
    for (let row = top; row <= bottom; row++) {
      for (let column = left; column <= right; column++) {
        for (const point of this.buckets[row * BUCKETS + column]) {
          const distance = ((this.data.x[point] - x) * this.across) ** 2 + ((this.data.y[point] - y) * this.down) ** 2;
          if (distance <= least && !this.isMuted(this.data.class_of[point])) [best, least] = [point, distance];
        }
      }
    }
    return best;
  }

  redraw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.images.clear();
  }

  draw() {
    const { context, ratio, look } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = look.paper;
    context.fillRect(0, 0, this.width, this.height);
    const inView = this.inView();
    const nBright = inView.reduce((sum, [own, points]) => sum + (this.isMuted(own) ? 0 : points.length), 0);
    const n = inView.reduce((sum, [, points]) => sum + points.length, 0);
    const inOrder = [...inView].sort(([a], [b]) => this.isMuted(b) - this.isMuted(a)); // bright ones above
    if (n <= DISCS_BELOW) for (const [own, points] of inOrder) this.discs(own, points);
    else this.specks(inOrder);
    this.placed.clear();
    if (this.thumbnail && nBright <= TILES_BELOW) this.tiles(inView);
    if (this.marked >= 0) this.ring(this.marked);
    if (this.showsMiddle) this.cross();
  }

  isMuted(own) {
    return this.chosen.size > 0 && !this.chosen.has(own);
  }

  colour(own) {
    const { colours, muted } = this.look;
    return own < 0 || this.isMuted(own) ? muted : colours[own % colours.length];
  }

  // Points of each class that are not outside.
  inView() {
    const { x, y } = this.data;
    const [left, top] = this.toMap(-TILE, -TILE);
    const [right, bottom] = this.toMap(this.width + TILE, this.height + TILE);
    const isIn = (point) => x[point] > left && x[point] < right && y[point] > top && y[point] < bottom;
    return this.groups.map(([own, points]) => [own, points.filter(isIn)]);
  }

  // One path a colour.
  discs(own, points) {
    const { data, context, across, down } = this;
    const [ox, oy] = this.origin();
    const radius = this.radiusOf(own);
    context.fillStyle = this.colour(own);
    context.beginPath();
    for (const point of points) {
      const [x, y] = [data.x[point] * across + ox, data.y[point] * down + oy];
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, 7);
    }
    context.fill();
  }

  // Many points: written into the pixels by hand, several times as fast as drawing them.
  specks(groups) {
    const { data, context, ratio } = this;
    const { width, height } = this.canvas;
    if (this.pixels?.width !== width || this.pixels?.height !== height) this.pixels = new ImageData(width, height);
    const pixels = new Uint32Array(this.pixels.data.buffer);
    pixels.fill(packed(this.look.paper));
    const [across, down] = [this.across * ratio, this.down * ratio];
    const [ox, oy] = this.origin().map((value) => value * ratio);
    for (const [own, points] of groups) {
      const colour = packed(this.colour(own));
      const side = Math.max(2, Math.round(2 * ratio * this.radiusOf(own)));
      const cut = side > 3 ? 1 : 0; // corners
      for (const point of points) {
        const left = Math.round(data.x[point] * across + ox - side / 2);
        const top = Math.round(data.y[point] * down + oy - side / 2);
        if (left < 0 || top < 0 || left + side > width || top + side > height) continue;
        for (let row = 0; row < side; row++) {
          const inset = row === 0 || row === side - 1 ? cut : 0;
          const start = (top + row) * width + left;
          for (let at = start + inset; at < start + side - inset; at++) pixels[at] = colour;
        }
      }
    }
    context.putImageData(this.pixels, 0, 0);
  }

  // Where the map's corner is, in pixels.
  origin() {
    return [this.width / 2 - this.middle[0] * this.across, this.height / 2 - this.middle[1] * this.down];
  }

  radiusOf(own) {
    return this.isMuted(own) ? 1.5 : this.radius();
  }

  radius() {
    const crowd = Math.sqrt(this.data.ids.length) / Math.sqrt(this.zoom);
    return clamp(150 / crowd, 1.5, 5);
  }

  // A cell of a lattice that belongs to the map: moving the map does not change what lies in it.
  cellOf(x, y) {
    const step = ((this.isSmall ? 2 / 3 : 1) * TILE) / 2 ** (Math.floor(2 * Math.log2(this.zoom)) / 2);
    const [wide, high] = [step / this.width, step / this.height];
    const [column, row] = [Math.floor(x / wide), Math.floor(y / high)];
    return { key: `${column},${row}`, x: (column + 0.5) * wide, y: (row + 0.5) * high, side: step * this.zoom - 6 };
  }

  // One thumbnail a cell, in its middle, so that none lies on another.
  tiles(inView) {
    const taken = new Set();
    for (const [own, points] of inView) {
      if (this.isMuted(own)) continue;
      for (const point of points) {
        const cell = this.cellOf(this.data.x[point], this.data.y[point]);
        if (taken.has(cell.key) || taken.size >= MOST_TILES) continue;
        const image = this.image(point);
        if (image?.isReady === false) continue; // there is no such file: another point may have one
        taken.add(cell.key);
        if (!image?.isReady) continue;
        const [x, y] = this.toScreen(cell);
        this.placed.set(cell.key, { point, ...this.tile(point, x, y, cell.side) });
      }
    }
  }

  // Cut to a square, as in the grids.
  tile(point, x, y, side) {
    const image = this.image(point);
    const { context } = this;
    const cut = Math.min(image.width, image.height);
    context.fillStyle = this.colour(this.data.class_of[point]);
    context.fillRect(x - side / 2 - 2, y - side / 2 - 2, side + 4, side + 4);
    context.drawImage(image, (image.width - cut) / 2, (image.height - cut) / 2, cut, cut, x - side / 2, y - side / 2, side, side);
    return { x, y, side };
  }

  ring(point) {
    const { context } = this;
    const tile = [...this.placed.values()].find((own) => own.point === point);
    context.beginPath();
    if (tile) context.rect(tile.x - tile.side / 2 - 3, tile.y - tile.side / 2 - 3, tile.side + 6, tile.side + 6);
    else {
      const [x, y] = this.toScreen({ x: this.data.x[point], y: this.data.y[point] });
      context.arc(x, y, this.radius() + 5, 0, 7);
    }
    context.strokeStyle = this.look.ink;
    context.lineWidth = 3;
    context.stroke();
  }

  cross() {
    const [x, y] = [this.width / 2, this.height / 2];
    this.context.fillStyle = this.look.ink;
    this.context.fillRect(x - 12, y - 0.75, 24, 1.5);
    this.context.fillRect(x - 0.75, y - 12, 1.5, 24);
  }

  // The point's thumbnail if it is there; asks for it if not, a few at a time.
  image(point) {
    const known = this.images.get(point);
    if (known || this.nLoading >= MOST_LOADING) return known;
    const image = new Image();
    const done = (isReady) => {
      this.nLoading--;
      image.isReady = isReady;
      this.redraw();
    };
    image.onload = () => done(true);
    image.onerror = () => done(false);
    image.src = this.thumbnail(this.data.ids[point]);
    this.nLoading++;
    this.images.set(point, image);
    if (this.images.size > MOST_KEPT) this.images.delete(this.images.keys().next().value);
    return image;
  }
}

const known = new Map();

// A colour of CSS as a pixel of ImageData.
function packed(colour) {
  if (!known.has(colour)) {
    const context = new OffscreenCanvas(1, 1).getContext("2d");
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    known.set(colour, new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0]);
  }
  return known.get(colour);
}

const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

const bucket = (value) => clamp(Math.floor(value * BUCKETS), 0, BUCKETS - 1);

function grouped(data) {
  const groups = new Map();
  data.class_of.forEach((own, point) => {
    if (!groups.has(own)) groups.set(own, []);
    groups.get(own).push(point);
  });
  return [...groups].map(([own, points]) => [own, Int32Array.from(points)]).sort((a, b) => a[0] - b[0]);
}

function bucketed(data) {
  const buckets = Array.from({ length: BUCKETS * BUCKETS }, () => []);
  data.x.forEach((x, point) => buckets[bucket(data.y[point]) * BUCKETS + bucket(x)].push(point));
  return buckets;
}
