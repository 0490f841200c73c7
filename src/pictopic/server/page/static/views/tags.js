// All tags; one tag with its neighbours, its pictures and what to review.
import { html, useContext, useState } from "../vendor/preact-htm.js";
import { get } from "../api.js";
import { Collection, allTags } from "../collection.js";
import { useLoad, usePages, useTitle } from "../hooks.js";
import { Empty, Loaded, Trouble, count } from "../parts/basics.js";
import { Decided } from "../parts/decided.js";
import { EndlessGrid } from "../parts/pictures.js";
import { to } from "../routes.js";
import { Review } from "./review.js";

const SHOWN = 200;
const PAGE = 48;
const N_SIMILAR = 12;

export function Tags({ route }) {
  const [name, kind] = route.parts;
  const collection = useContext(Collection);
  if (!collection.has_tags) {
    return html`<h1 tabindex="-1">Tags</h1>
      <${Empty} title="No tags yet">The collection has no tags. Put a metadata.csv with the columns file_name and tags beside your
        pictures and learn again; the documentation shows one.<//>`;
  }
  if (name && (kind === "missing" || kind === "doubtful")) return html`<${Review} key=${`${kind} ${name}`} tag=${name} kind=${kind} />`;
  return name ? html`<${OneTag} key=${name} name=${name} />` : html`<${AllTags} />`;
}

function AllTags() {
  const { has_pictures: hasPictures } = useContext(Collection);
  const [wanted, setWanted] = useState("");
  const found = useLoad(() => allTags(), []);
  useTitle("Tags");
  return html`
    <h1 tabindex="-1">Tags</h1>
    <p class="lead-in">Choose a tag to see its pictures${hasPictures ? ", and to find those where it is missing or wrong" : ""}.</p>
    ${hasPictures && html`<${Decided} />`}
    <${Loaded} of=${found}>${(tags) => {
      const fitting = tags.filter(({ name }) => name.toLowerCase().includes(wanted.trim().toLowerCase()));
      const most = tags[0]?.count ?? 1;
      return html`
        <div class="field filter"><label for="tag-filter">Find a tag among ${tags.length.toLocaleString("en")}</label>
          <input id="tag-filter" type="search" value=${wanted} autocomplete="off" onInput=${(event) => setWanted(event.target.value)} /></div>
        <p class="unseen" role="status">${count(fitting.length, "tag")}</p>
        ${!fitting.length && html`<${Empty} title="No such tag">No tag has “${wanted}” in it.<//>`}
        <ul class="tag-list plain">${fitting.slice(0, SHOWN).map(({ name, count: number }) => html`
          <li key=${name}><a href=${to("tags", [name])}><span class="what">${name}</span>
            <span class="track"><span style=${{ width: `${Math.max(1, (100 * number) / most)}%` }} /></span>
            <span class="score" aria-label=${count(number, "picture")}>${number.toLocaleString("en")}</span></a></li>`)}</ul>
        ${fitting.length > SHOWN && html`<p class="hint">These are the ${SHOWN} most frequent. Type above to find others.</p>`}`;
    }}<//>`;
}

function OneTag({ name }) {
  const { has_pictures: hasPictures } = useContext(Collection);
  useTitle(`Tag ${name}`);
  const about = useLoad((signal) => get(`tags/${encodeURIComponent(name)}`, { k: N_SIMILAR, limit: 1 }, signal), [name]);
  const pages = usePages(`tag ${name}`, (offset, signal) =>
    get("pictures", { tag: name, offset, limit: PAGE }, signal).then(({ pictures, next_offset: next, total }) => ({ items: pictures, next, total })));
  return html`
    <p class="back"><a href=${to("tags")}>← All tags</a></p>
    <h1 tabindex="-1">${name}</h1>
    ${about.error && html`<${Trouble} error=${about.error} retry=${about.reload} />`}
    ${hasPictures && html`<div class="cards two">
      <a class="card choice" href=${to("tags", [name, "missing"])}><h2>Where is it missing?</h2>
        <p>Pictures without “${name}” that probably should have it. You say yes or no.</p></a>
      <a class="card choice" href=${to("tags", [name, "doubtful"])}><h2>Where is it wrong?</h2>
        <p>Pictures with “${name}” that the model doubts most.</p></a>
    </div>`}
    ${about.data?.similar.length > 0 && html`
      <section><h2>Tags near it</h2><p>Used in the same way, as far as the model has seen.</p>
        <p class="chips">${about.data.similar.map((own) => html`<a key=${own.name} class="chip" href=${to("tags", [own.name])}>${own.name}</a>`)}</p></section>`}
    <section><h2>${pages.total === null ? "Its pictures" : `${count(pages.total, "picture")} with it`}</h2>
      <p><a href=${to("search", [], { tags: name })}>Search with it</a> finds pictures that look like it, tagged or not.</p>
      <${EndlessGrid} pages=${pages} label=${`Pictures with ${name}`} /></section>`;
}
