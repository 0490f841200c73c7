// How good the model is: figures, what it confuses, how well it finds each tag, how it learnt, odd pictures.
import { html, useContext, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { get } from "../api.js";
import { Collection } from "../collection.js";
import { useLoad, usePages, useTitle } from "../hooks.js";
import { Empty, Loaded, Meaning, count, percent } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { EndlessGrid } from "../parts/pictures.js";
import { to } from "../routes.js";

const PAGE = 24;
const ROWS = 30;

export function Quality({ route }) {
  useTitle("Quality");
  const found = useLoad((signal) => get("quality", {}, signal), []);
  return html`
    <h1 tabindex="-1">How good is it?</h1>
    <${Loaded} of=${found} text="Going through the pictures; the first time this can take some seconds…">${(data) => html`
      <p class="lead">${data.n_held_out
        ? `These figures are about ${count(data.n_held_out, "picture")} that were set aside, and which it had not seen when it was asked about them.`
        : Object.keys(data.figures).length
          ? "These figures are about pictures that were set aside, and which it had not seen when it was asked about them."
          : "Nothing was set aside when the model learnt, so that there are no honest figures to show."}</p>
      <${Figures} figures=${data.figures} />
      ${data.confusion && html`<${Confusion} of=${data.confusion} query=${route.query} />`}
      ${data.tags.length > 0 && html`<${TagTable} tags=${data.tags} />`}
      ${data.curves.length > 0 && html`
        <section><h2>How it learnt</h2>
          <p>Each pass goes once over all pictures. Where the line for the pictures that were set aside stops getting better, learning ends.</p>
          <div class="cards">${data.curves.map((own) => html`<${Chart} key=${own.title} ...${own} />`)}</div></section>`}
      ${data.odd && html`<${Odd} text=${data.odd} />`}`}<//>`;
}

// In words that need no course: of 100, how many; and what one would get without any model.
function Figures({ figures }) {
  const { multi_label: isMulti } = useContext(Collection);
  const known = [
    ["classes", isMulti ? "Classes: how well the right ones come first" : "Pictures whose class is right", "always saying the most frequent class"],
    ["tags", "Tags: how well the best five fit", "always giving the five most frequent tags"],
  ].filter(([name]) => typeof figures[name] === "number");
  const [perWord, byFrequency] = [figures.log_likelihood_per_word, figures.log_likelihood_per_word_baseline];
  const hasLikelihood = typeof perWord === "number" && typeof byFrequency === "number";
  if (!known.length && !hasLikelihood) return null;
  const words = Object.fromEntries(known);
  return html`
    <dl class="highlights">${known.map(([name, title, trivial]) => {
      const [value, base] = [figures[name], figures[`${name}_baseline`]];
      return html`
        <div key=${name}><dt>${title}</dt>
          <dd><span class="value">${Math.round(100 * value)}</span> <span class="unit">of 100</span>
            <span class="measure"><span style=${{ width: `${100 * value}%` }} />${typeof base === "number" && html`<i style=${{ left: `${100 * base}%` }} />`}</span>
            ${typeof base === "number" && html`<span class="hint">The mark: ${Math.round(100 * base)} of 100 by ${trivial}.</span>`}</dd></div>`;
    })}
      ${hasLikelihood && html`
        <div><dt>Guessing the next word of a picture</dt>
          <dd><span class="value">${equallyLikely(perWord)}</span> <span class="unit">equally likely words to choose from</span>
            <div class="hint">${equallyLikely(byFrequency)} if one only knew how frequent each word is; fewer are better.</div></dd></div>`}</dl>
    <${Meaning} title="What these figures mean">
      ${words.classes && html`<p><strong>Classes</strong>: ${isMulti
        ? "each class ranks the pictures; 100 would mean that all that have it come before all that do not (mean average precision)."
        : "of 100 pictures, so many got the class that somebody had given them (accuracy)."}</p>`}
      ${words.tags && html`<p><strong>Tags</strong>: the model gives five tags to each picture; 100 would mean that they are exactly those that
        somebody had given. Tags that fit but were never given count as wrong, so that no model reaches it (F-measure).</p>`}
      ${hasLikelihood && html`<p><strong>Words</strong>: the model sees some words of a picture (its kinds of small patches, or its tags) and guesses the next.
        The fewer equally likely words it would have to choose from, the better it knows what comes together (perplexity; the log-likelihood
        is ${perWord.toFixed(2)} nats per word, ${byFrequency.toFixed(2)} for a model that knows only how frequent each word is).</p>`}<//>`;
}

const equallyLikely = (logLikelihood) => Number(Math.exp(-logLikelihood).toPrecision(3));

function Confusion({ of, query }) {
  const { classes, counts } = of;
  const { true: own, predicted } = query;
  const isChosen = classes.includes(own) && classes.includes(predicted);
  const rowSums = counts.map((row) => row.reduce((sum, value) => sum + value, 0));
  return html`
    <section><h2>Which classes are mixed up</h2>
      <p>A row for each true class; the columns say what the model took its pictures for. Press a number to see the pictures.</p>
      <div class="card scroll" tabindex="0" role="region" aria-label="Table of classes">
        <table class="confusion"><caption class="unseen">True classes in rows, answers in columns</caption>
          <thead><tr><td class="hint">true ↓ taken for →</td>${classes.map((name) => html`<th key=${name} scope="col"><span>${name}</span></th>`)}</tr></thead>
          <tbody>${classes.map((name, row) => html`
            <tr key=${name}><th scope="row">${name}</th>
              ${counts[row].map((value, column) => html`<${Cell} key=${column} value=${value} share=${value / Math.max(1, rowSums[row])}
                isRight=${row === column} own=${name} predicted=${classes[column]} isChosen=${own === name && predicted === classes[column]} />`)}</tr>`)}</tbody>
        </table></div>
      ${isChosen && html`<${Examples} key=${`${own} ${predicted}`} own=${own} predicted=${predicted} />`}
    </section>`;
}

function Cell({ value, share, isRight, own, predicted, isChosen }) {
  if (!value) return html`<td><span class="zero">0</span></td>`;
  const shade = `color-mix(in srgb, var(${isRight ? "--accent" : "--wrong"}) ${Math.round(10 + 35 * share)}%, var(--card))`;
  return html`
    <td style=${{ background: shade }}><button type="button" aria-pressed=${isChosen ? "true" : "false"}
      aria-label=${`${value} of ${own} ${isRight ? "found right" : `taken for ${predicted}`}: show pictures`}
      onClick=${() => { location.hash = to("quality", [], { true: own, predicted }); }}>${value}</button></td>`;
}

function Examples({ own, predicted }) {
  const pages = usePages(`confused ${own} ${predicted}`, (offset, signal) =>
    get("quality/confused", { true: own, predicted, offset, limit: PAGE }, signal)
      .then(({ pictures, next_offset: next, total }) => ({ items: pictures, next, total })));
  const heading = useRef(null);
  useEffect(() => heading.current?.scrollIntoView({ block: "nearest" }), [pages.items.length > 0]);
  return html`
    <div class="examples" aria-live="polite">
      <h3 ref=${heading}>${own === predicted ? `${own}, found right` : `${own}, taken for ${predicted}`}</h3>
      <p class="hint">With how sure the model was; the surest first.</p>
      <${EndlessGrid} pages=${pages} label="Pictures of this cell" note=${(picture) => percent(picture.probability)} /></div>`;
}

const COLUMNS = [
  ["name", "Tag", ""],
  ["count", "Pictures", "set aside, that have it"],
  ["precision", "Right when given", "precision"],
  ["recall", "Found", "recall"],
  ["f", "Both in one", "F-measure"],
];

function TagTable({ tags }) {
  const [order, setOrder] = useState({ column: "count", isDown: true });
  const [isWhole, setWhole] = useState(false);
  const sorted = [...tags].sort((a, b) => compare(a[order.column], b[order.column]) * (order.isDown ? -1 : 1));
  const shown = isWhole ? sorted : sorted.slice(0, ROWS);
  const sort = (column) => setOrder({ column, isDown: order.column === column ? !order.isDown : column !== "name" });
  return html`
    <section><h2>How well it finds each tag</h2>
      <${Meaning} title="How to read this">
        <p><strong>Right when given</strong>: of 100 pictures that the model gives the tag, so many have it.</p>
        <p><strong>Found</strong>: of 100 pictures that have the tag, the model finds so many. A model can be good at one and bad at the other,
          which is why there is a figure for <strong>both in one</strong>. A tag that somebody forgot counts against the model.</p><//>
      <div class="card scroll" tabindex="0" role="region" aria-label="Table of tags">
        <table class="figures"><caption class="unseen">Each tag, and how well it is found</caption>
          <thead><tr>${COLUMNS.map(([column, title, hint]) => html`
            <th key=${column} scope="col" aria-sort=${order.column === column ? (order.isDown ? "descending" : "ascending") : undefined}>
              <button type="button" onClick=${() => sort(column)}>${title}<span class="arrow" aria-hidden="true">${order.column === column ? (order.isDown ? " ↓" : " ↑") : ""}</span></button>
              ${hint && html`<span class="hint">${hint}</span>`}</th>`)}</tr></thead>
          <tbody>${shown.map((own) => html`
            <tr key=${own.name}><th scope="row"><a href=${to("tags", [own.name])}>${own.name}</a></th><td>${own.count}</td>
              ${[own.precision, own.recall, own.f].map((value, number) => html`<td key=${number}>${typeof value === "number" ? percent(value) : "–"}</td>`)}</tr>`)}</tbody>
        </table></div>
      ${!isWhole && tags.length > ROWS && html`<button type="button" onClick=${() => setWhole(true)}>Show all ${tags.length} tags</button>`}
    </section>`;
}

function compare(a, b) {
  if (typeof a === "string") return a.localeCompare(b);
  return (a ?? -1) - (b ?? -1);
}

function Odd({ text }) {
  const pages = usePages("odd", (offset, signal) =>
    get("quality/odd", { offset, limit: PAGE }, signal).then(({ pictures, next_offset: next, total }) => ({ items: pictures, next, total })));
  const [isOpen, setOpen] = useState(false);
  const shown = isOpen ? pages : { ...pages, items: pages.items.slice(0, 12), next: pages.items.length > 12 ? null : pages.next };
  return html`
    <section><h2>Odd pictures first</h2>
      <p>Worth a look: they may be wrongly tagged, out of place, or simply rare. ${text}</p>
      <${EndlessGrid} pages=${shown} label="Odd pictures" note=${(picture) => picture.log_likelihood.toFixed(2)}
        empty=${html`<${Empty} title="None">There is nothing to measure.<//>`} />
      ${!isOpen && pages.items.length > 12 && html`<button type="button" onClick=${() => setOpen(true)}>Show more</button>`}
    </section>`;
}
