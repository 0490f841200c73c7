// What the collection is about: the map, the classes, the topics.
import { html, useContext } from "../vendor/preact-htm.js";
import { address, get } from "../api.js";
import { Collection } from "../collection.js";
import { useLoad, usePages, useTitle } from "../hooks.js";
import { Empty, Loaded, Meaning, Trouble, Waiting, count } from "../parts/basics.js";
import { Grid } from "../parts/pictures.js";
import { to } from "../routes.js";
import { CollectionMap } from "./map.js";

const PAGE = 24;
const N_WORDS = 4; // visual words of a class
const N_TAGS = 8;
const PARTS = { "": "Map", classes: "Classes", list: "Topics" };

export function Topics({ route }) {
  const part = route.parts[0] in PARTS ? route.parts[0] : "";
  const { has_classes: hasClasses } = useContext(Collection);
  useTitle(PARTS[part] === "Map" ? "Map of the collection" : PARTS[part]);
  return html`
    <h1 tabindex="-1">What your collection is about</h1>
    <nav class="tabs" aria-label="Parts of this view"><ul>
      ${Object.entries(PARTS).filter(([name]) => name !== "classes" || hasClasses).map(([name, title]) => html`
        <li key=${name}><a href=${to("topics", name ? [name] : [])} aria-current=${name === part ? "page" : undefined}>${title}</a></li>`)}
    </ul></nav>
    ${part === "" ? html`<${CollectionMap} />` : part === "classes" ? html`<${Classes} />` : html`<${TopicList} />`}`;
}

function Classes() {
  const { has_pictures: hasPictures } = useContext(Collection);
  const found = useLoad((signal) => get("topics", { limit: 1 }, signal), []);
  return html`
    <p class="lead-in">For each class, what the model goes by.</p>
    <${Meaning} title="How to read this">
      <p><strong>Visual words</strong> are kinds of small patches that the model tells apart; each is shown by 16 examples from your pictures.</p>
      <p><strong>Words</strong> are the tags that go with the class.</p>
      <p><strong>Hidden units</strong> are what the model has inside instead of words: each stands for something that often
        comes together. The numbers are those that speak most for the class; they are the same as under “Topics”.</p><//>
    <${Loaded} of=${found} text="Asking the model; the first time this can take some seconds…">${({ classes }) => classes.length
      ? html`<ul class="cards two plain">${classes.map((own) => html`<${ClassCard} key=${own.label} of=${own} hasPictures=${hasPictures} />`)}</ul>`
      : html`<${Empty} title="No classes">The collection was learnt without classes.<//>`}<//>`;
}

const ClassCard = ({ of, hasPictures }) => html`
  <li class="card class-card">
    <h2><a href=${to("search", [], { label: of.label })}>${of.label}</a></h2>
    ${hasPictures && html`<${VisualWords} of=${of.visual_words} />`}
    ${of.tags.length > 0 && html`
      <p class="chips" aria-label="Words">${of.tags.slice(0, N_TAGS).map(({ name }) => html`<a key=${name} class="chip" href=${to("tags", [name])}>${name}</a>`)}</p>`}
    ${of.units.length > 0 && html`<p class="hint">Hidden units ${of.units.slice(0, 6).join(", ")}</p>`}
  </li>`;

const VisualWords = ({ of }) => of.length > 0 && html`
  <ul class="words plain" aria-label="Visual words">${of.slice(0, N_WORDS).map(({ word }) => html`
    <li key=${word}><img src=${address(`visual-words/${word}`)} loading="lazy" alt=${`Visual word ${word}: 16 example patches`}
      onError=${(event) => { event.target.hidden = true; }} /></li>`)}</ul>`;

// The largest topics come first; those that are the strongest in no picture have nothing to show.
const topicsOf = ({ topics, next_offset: next, total }) => {
  const items = topics.filter((topic) => topic.count > 0);
  return { items, next: items.length < topics.length ? null : next, total };
};

function TopicList() {
  const { has_tags: hasTags, has_pictures: hasPictures } = useContext(Collection);
  const pages = usePages("topics", (offset, signal) => get("topics", { offset, limit: PAGE }, signal).then(topicsOf));
  const { items, error, isLoading, next, more } = pages;
  return html`
    <p class="lead-in">A topic is something that often comes together in your pictures. Nobody named them: the model found them by itself.</p>
    ${hasPictures && items.some((topic) => topic.visual_words.length) && html`
      <${Meaning} title="How to read this">
        <p><strong>Visual words</strong> are kinds of small patches that the model tells apart; each is shown by 16 examples from your pictures.
          Each topic shows those that speak most for it, and the pictures that are most typical of it.</p><//>`}
    ${!items.length && next === null && html`<${Empty} title="No topics">The model has found none.<//>`}
    <ul class="cards two plain">${items.map((topic) => html`
      <li key=${topic.topic} class="card">
        <h2 class="topic-title">${topic.tags.slice(0, 3).join(", ") || `Topic ${topic.topic}`}</h2>
        <p class="hint">Hidden unit ${topic.topic}; strongest in ${count(topic.count, "picture")}</p>
        ${hasPictures && html`<${VisualWords} of=${topic.visual_words} />`}
        ${topic.pictures.length > 0 && html`<${Grid} pictures=${topic.pictures.slice(0, 5)} label="Where it is strongest" kind="five" />`}
        ${hasTags && topic.tags.length > 3 && html`
          <p class="chips">${topic.tags.slice(3, N_TAGS).map((name) => html`<a key=${name} class="chip" href=${to("tags", [name])}>${name}</a>`)}</p>`}
      </li>`)}</ul>
    <div class="end">
      ${error && html`<${Trouble} error=${error} retry=${more} />`}
      ${isLoading && html`<${Waiting} text=${items.length ? "Loading…" : "Asking the model; the first time this can take some seconds…"} />`}
      ${!isLoading && !error && next !== null && html`<button type="button" onClick=${more}>Show more</button>`}
    </div>`;
}
