// Pictures by tags, by a picture, or both; without a question, all of them.
import { html, useContext, useEffect } from "../vendor/preact-htm.js";
import { get, sendPicture, thumbnail } from "../api.js";
import { Collection } from "../collection.js";
import { announce, usePages, useTitle } from "../hooks.js";
import { Empty, Trouble, count } from "../parts/basics.js";
import { PickButton, useBrought } from "../parts/drop.js";
import { EndlessGrid } from "../parts/pictures.js";
import { TagInput } from "../parts/taginput.js";
import { go, to } from "../routes.js";
import { upload } from "../upload.js";

const PAGE = 60;
const UPLOADED = "yours";

// What is asked for, as it stands in the address.
function questionOf(query) {
  return {
    tags: (query.tags ?? "").split(",").filter(Boolean),
    like: query.like ?? "",
    label: query.label ?? "",
    picture: query.picture === UPLOADED && upload.file ? UPLOADED : "",
  };
}

function ask(question, offset, signal) {
  const { tags, like, label, picture } = question;
  const parameters = { label, offset, limit: PAGE };
  const pages = ({ pictures, next_offset: next, total }) => ({ items: pictures, next, total });
  if (picture) return sendPicture("search", { ...parameters, tags }, upload.file, signal).then(pages);
  if (tags.length || like) return get("search", { ...parameters, tags, like }, signal).then(pages);
  return get("pictures", parameters, signal).then(pages);
}

export function Search({ route }) {
  const collection = useContext(Collection);
  const question = questionOf(route.query);
  const { tags, like, label, picture } = question;
  const change = (part) => {
    const { tags: words, ...rest } = { ...question, ...part };
    go("search", [], { ...rest, tags: words.join(",") });
  };
  const brought = useBrought(() => change({ picture: UPLOADED, like: "" }));
  const hasQuery = tags.length > 0 || like !== "" || picture !== "";
  const key = `search ${JSON.stringify(question)} ${picture && upload.number}`;
  const pages = usePages(key, (offset, signal) => ask(question, offset, signal));
  const about = [tags.join(", "), (like || picture) && "like a picture", label && `only ${label}`].filter(Boolean).join(", ");
  useTitle(about ? `Search: ${about}` : "Search");
  useEffect(() => {
    if (pages.items.length) announce(`${count(pages.total ?? pages.items.length, "picture")}${pages.total || pages.next === null ? "" : " so far"}`);
  }, [key, pages.items.length]);
  return html`
    <h1 tabindex="-1">Search</h1>
    <div class=${brought.isOver ? "card question over" : "card question"}>
      ${collection.has_tags && html`
        <div class="field grow"><label for="search-tags">Tags</label>
          <${TagInput} id="search-tags" tags=${tags} onChange=${(own) => change({ tags: own })} /></div>`}
      ${collection.has_pictures && html`
        <div class="field"><span class="label">Like a picture</span>
          <${LikePicture} like=${like} picture=${picture} brought=${brought} onClear=${() => change({ like: "", picture: "" })} /></div>`}
      ${collection.has_classes && html`
        <div class="field"><label for="search-label">Only of the class</label>
          <select id="search-label" value=${label} onChange=${(event) => change({ label: event.target.value })}>
            <option value="">any</option>
            ${collection.classes.map(({ name, count: number }) => html`<option key=${name} value=${name}>${name} (${number})</option>`)}
          </select></div>`}
    </div>
    ${brought.error && html`<${Trouble} error=${brought.error} />`}
    <p class="hint found">${hasQuery
      ? "Best first. Pictures need not have the tags: the model finds those that look like it."
      : html`This is your collection${pages.total === null ? "" : `: ${count(pages.total, "picture")}${label ? ` of “${label}”` : ""}`}.
          ${collection.has_tags ? "Name a tag, or bring a picture, to find those that fit." : "Bring a picture to find those like it."}`}</p>
    <${EndlessGrid} pages=${pages} label="Pictures" note=${hasQuery ? (own) => own.similarity?.toFixed(2) : null}
      empty=${html`<${Empty} title="Nothing found">No picture fits. Take a tag away, or <a href=${to("search")}>start again</a>.<//>`} />`;
}

function LikePicture({ like, picture, brought, onClear }) {
  if (!like && !picture) return html`<${PickButton} onFile=${brought.take} kind="">Bring one<//>`;
  const source = like ? thumbnail(like, 128) : upload.url;
  return html`
    <span class="like"><img src=${source} alt="The picture to search with" />
      <button type="button" onClick=${onClear}>Remove</button></span>`;
}
