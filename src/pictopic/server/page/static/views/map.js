// The collection as a map: alike pictures lie near each other.
import { html, useContext, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { get, thumbnail } from "../api.js";
import { Collection } from "../collection.js";
import { announce, useLoad } from "../hooks.js";
import { Empty, Loaded, count } from "../parts/basics.js";
import { Plot } from "../parts/plot.js";
import { go } from "../routes.js";

const STEP = 60; // pixels of an arrow key
const NEAR = 14; // pixels within which the pointer means a point
const ROOM = 0.65;
const A_CLICK = 5; // pixels that a hand moves without meaning it

// Told apart in light and dark; beyond ten classes, hues that turn by the golden angle.
const COLOURS = ["#3b7ddd", "#e07b39", "#3a9d5d", "#c94f7c", "#8d6fd1", "#b08d2e", "#2aa5a0", "#d4574e", "#7a8b99", "#94b23c"];

export const colourOf = (own) => (own < COLOURS.length ? COLOURS[own] : `hsl(${Math.round(own * 137.508) % 360} 55% 52%)`);

function lookOf(element, n) {
  const style = getComputedStyle(element);
  const own = (name) => style.getPropertyValue(name).trim();
  const colours = n ? Array.from({ length: n }, (_, number) => colourOf(number)) : [own("--accent")];
  return { colours, muted: n ? own("--dot") : own("--accent"), ink: own("--ink"), paper: own("--card") };
}

// Crowded places get more room: each axis goes for the most part by the number of pictures.  What lies left of what stays.
export function roomier(values) {
  const order = Array.from(values.keys()).sort((a, b) => values[a] - values[b]);
  const found = new Float32Array(values.length);
  order.forEach((point, place) => {
    found[point] = (1 - ROOM) * values[point] + (ROOM * (place + 0.5)) / values.length;
  });
  return found;
}

let drawn = null; // where the map was left, for "back"

export function CollectionMap() {
  const map = useLoad(async (signal) => {
    const found = await get("map", {}, signal);
    return { ...found, x: roomier(found.x), y: roomier(found.y) };
  }, []);
  return html`<${Loaded} of=${map} text="Drawing the map; the first time this can take some seconds…">
    ${(data) => data.ids.length
      ? html`<${Drawn} data=${data} />`
      : html`<${Empty} title="There is nothing to draw">The collection has no pictures.<//>`}<//>`;
}

function Drawn({ data }) {
  const collection = useContext(Collection);
  const canvas = useRef(null);
  const plot = useRef(null);
  const [pointed, setPointed] = useState(null); // {point, x, y}
  const [chosen, setChosen] = useState(() => new Set());
  const counts = useMemo(() => {
    const found = new Array(data.classes.length).fill(0);
    for (const own of data.class_of) if (own >= 0) found[own]++;
    return found;
  }, [data]);
  const open = (point) => point >= 0 && go("look", [data.ids[point]]);

  useEffect(() => {
    const look = lookOf(canvas.current, data.classes.length);
    const own = new Plot(canvas.current, data, { look, thumbnail: collection.has_pictures ? (id) => thumbnail(id, 128) : null });
    plot.current = own;
    if (drawn?.n === data.ids.length) Object.assign(own, { zoom: drawn.zoom, middle: drawn.middle });
    const stop = listen(canvas.current, own, setPointed, open);
    return () => {
      drawn = { n: data.ids.length, zoom: own.zoom, middle: own.middle };
      stop();
      own.close();
    };
  }, [data]);
  useEffect(() => plot.current.choose(chosen), [chosen]);

  const toggle = (own) => {
    const next = new Set(chosen);
    if (!next.delete(own)) next.add(own);
    setChosen(next);
  };
  const keys = (event) => onKey(event, plot.current, (point) => {
    setPointed(point < 0 ? null : { point, x: plot.current.width / 2, y: plot.current.height / 2 });
    if (point >= 0) announce(`In the middle: a picture${data.class_of[point] >= 0 ? ` of ${data.classes[data.class_of[point]]}` : ""}`);
  }, open);
  return html`
    <div class="map">
      ${data.classes.length > 0 && html`
        <ul class="map-legend" aria-label="Show only these classes">
          ${data.classes.map((name, own) => html`
            <li key=${name}><button type="button" class="chip" aria-pressed=${chosen.has(own) ? "true" : "false"} onClick=${() => toggle(own)}>
              <i style=${{ background: colourOf(own) }} />${name} <span class="hint">${counts[own]}</span></button></li>`)}
          ${chosen.size > 0 && html`<li><button type="button" class="quiet" onClick=${() => setChosen(new Set())}>Show all</button></li>`}
        </ul>`}
      <div class="map-frame">
        <canvas ref=${canvas} tabindex="0" role="application" aria-label=${`Map of ${count(data.ids.length, "picture")}`}
          aria-describedby="map-help" onKeyDown=${keys}
          onBlur=${() => { plot.current.showsMiddle = false; plot.current.mark(-1); setPointed(null); plot.current.redraw(); }} />
        <div class="map-buttons">
          <button type="button" aria-label="Nearer" onClick=${() => plot.current.scale(1.6)}>+</button>
          <button type="button" aria-label="Farther" onClick=${() => plot.current.scale(1 / 1.6)}>−</button>
          <button type="button" aria-label="The whole map" onClick=${() => plot.current.reset()}>⤢</button>
        </div>
        ${pointed && html`<${Hint} data=${data} pointed=${pointed} frame=${plot.current} hasPictures=${collection.has_pictures} />`}
      </div>
      <p id="map-help" class="hint">Pictures that lie near each other are alike to the model. Drag to move, turn the wheel or pinch to come nearer until you see the pictures;
        by keyboard: arrows, + and −, Enter opens the picture in the middle.</p>
    </div>`;
}

function Hint({ data, pointed, frame, hasPictures }) {
  const { point, x, y } = pointed;
  const own = data.class_of[point];
  const isLeft = x > frame.width / 2;
  const isUp = y > frame.height / 2;
  const place = {
    left: isLeft ? "auto" : `${x + 16}px`, right: isLeft ? `${frame.width - x + 16}px` : "auto",
    top: isUp ? "auto" : `${y + 16}px`, bottom: isUp ? `${frame.height - y + 16}px` : "auto",
  };
  return html`
    <div class="map-hint card" style=${place}>
      ${hasPictures && html`<img key=${point} src=${thumbnail(data.ids[point], 256)} alt="" />`}
      <span>${own >= 0 ? data.classes[own] : "no class"}</span>
    </div>`;
}

// Arrows move the map under a cross; the picture nearest to the cross is meant.
function onKey(event, plot, onMiddle, open) {
  const actions = {
    ArrowLeft: () => plot.move(STEP, 0), ArrowRight: () => plot.move(-STEP, 0),
    ArrowUp: () => plot.move(0, STEP), ArrowDown: () => plot.move(0, -STEP),
    "+": () => plot.scale(1.4), "=": () => plot.scale(1.4), "-": () => plot.scale(1 / 1.4), 0: () => plot.reset(),
    Enter: () => open(plot.marked),
  };
  if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  actions[event.key]();
  if (event.key === "Enter") return;
  plot.showsMiddle = true;
  const point = plot.at(plot.width / 2, plot.height / 2, Math.max(plot.width, plot.height) / 2);
  plot.mark(point);
  onMiddle(point);
}

function listen(canvas, plot, setPointed, open) {
  const down = new Map(); // where each finger or button is
  let travelled = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const point = (event) => {
    const [x, y] = place(event);
    const found = plot.at(x, y, NEAR);
    canvas.classList.toggle("on-point", found >= 0);
    plot.showsMiddle = false;
    plot.mark(found);
    setPointed(found < 0 ? null : { point: found, x, y });
  };
  const spread = () => {
    const [[ax, ay], [bx, by]] = [...down.values()];
    return { distance: Math.hypot(ax - bx, ay - by), x: (ax + bx) / 2, y: (ay + by) / 2 };
  };
  const listeners = {
    pointerdown: (event) => {
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, place(event));
      travelled = down.size > 1 ? Infinity : 0;
      setPointed(null);
    },
    pointermove: (event) => {
      const before = down.get(event.pointerId);
      if (!before) {
        if (event.pointerType === "mouse") point(event);
        return;
      }
      const now = place(event);
      travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (down.size === 1) {
        down.set(event.pointerId, now);
        plot.move(now[0] - before[0], now[1] - before[1]);
      } else if (down.size === 2) {
        const old = spread();
        down.set(event.pointerId, now);
        const { distance, x, y } = spread();
        plot.scale(distance / Math.max(1, old.distance), x, y);
        plot.move(x - old.x, y - old.y);
      }
    },
    pointerup: (event) => {
      down.delete(event.pointerId);
      if (travelled > A_CLICK) return;
      const [x, y] = place(event);
      open(plot.at(x, y, event.pointerType === "mouse" ? NEAR : 2 * NEAR));
    },
    pointercancel: (event) => down.delete(event.pointerId),
    pointerleave: () => down.size || (setPointed(null), plot.mark(-1)),
    wheel: (event) => {
      event.preventDefault();
      setPointed(null);
      plot.scale(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), ...place(event));
    },
  };
  for (const [name, own] of Object.entries(listeners)) canvas.addEventListener(name, own, { passive: false });
  const watcher = new ResizeObserver(() => plot.resize());
  watcher.observe(canvas);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const recolour = () => {
    plot.look = lookOf(canvas, plot.data.classes.length);
    plot.redraw();
  };
  scheme.addEventListener("change", recolour);
  return () => {
    for (const [name, own] of Object.entries(listeners)) canvas.removeEventListener(name, own);
    watcher.disconnect();
    scheme.removeEventListener("change", recolour);
  };
}
