// Lines over passes, as SVG.
import { html } from "../vendor/preact-htm.js";

const WIDTH = 320;
const HEIGHT = 180;
const LEFT = 46;
const BOTTOM = 24;
const TOP = 10;
const RIGHT = 10;

// Round numbers that hold all between two.
export function ticks(low, high, n = 4) {
  if (!(high > low)) return [low];
  const rough = (high - low) / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((own) => own * power).find((own) => own >= rough);
  const [first, last] = [Math.floor(low / step), Math.ceil(high / step)];
  return Array.from({ length: last - first + 1 }, (_, number) => Number(((first + number) * step).toPrecision(10)));
}

const short = (value) => (Math.abs(value) >= 10_000 ? `${Number((value / 1000).toPrecision(3))}k` : String(Number(value.toPrecision(3))));

export function Chart({ title, series }) {
  const values = series.flatMap((own) => own.values).filter((value) => value !== null);
  const n = Math.max(...series.map((own) => own.values.length));
  if (values.length < 2) return null;
  const levels = ticks(Math.min(...values), Math.max(...values));
  const [low, high] = [Math.min(...values, levels[0]), Math.max(...values, levels.at(-1))];
  const x = (pass) => LEFT + ((WIDTH - LEFT - RIGHT) * (pass - 1)) / Math.max(1, n - 1);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (high > low ? (high - value) / (high - low) : 0.5);
  const inWords = series.map((own) => {
    const known = own.values.filter((value) => value !== null);
    return `${own.name}: from ${short(known[0])} to ${short(known.at(-1))}`;
  });
  return html`
    <figure class="card chart-card">
      <figcaption>${title}</figcaption>
      <svg class="chart" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${title}; ${inWords.join("; ")} in ${n} passes`}>
        ${levels.map((value) => html`
          <line class="rule" x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y(value)} y2=${y(value)} />
          <text class="axis" x=${LEFT - 6} y=${y(value) + 4} text-anchor="end">${short(value)}</text>`)}
        ${ticks(1, n).filter((pass) => Number.isInteger(pass) && pass >= 1 && pass <= n).map((pass) => html`<text class="axis" x=${x(pass)} y=${HEIGHT - 6} text-anchor="middle">${pass}</text>`)}
        ${series.map((own, number) => html`<path class=${`curve curve-${number % 3}`} d=${path(own.values, x, y)} />`)}
      </svg>
      <ul class="legend plain">${series.map((own, number) => html`<li key=${own.name} class=${`key-${number % 3}`}>${own.name}</li>`)}</ul>
    </figure>`;
}

function path(values, x, y) {
  let isDown = false;
  return values.map((value, number) => {
    if (value === null) {
      isDown = false;
      return "";
    }
    const step = `${isDown ? "L" : "M"}${x(number + 1).toFixed(1)} ${y(value).toFixed(1)}`;
    isDown = true;
    return step;
  }).join("");
}
