// Pictures of the collection: one, and a grid of them that grows while one scrolls.
import { html, useContext, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { thumbnail } from "../api.js";
import { Collection } from "../collection.js";
import { to } from "../routes.js";
import { Trouble, Waiting } from "./basics.js";

// In words: what a picture is called and what is known of it.
export function inWords(picture) {
  const known = [...(picture.labels ?? []), ...picture.tags].slice(0, 8);
  return known.length ? `${picture.file_name}: ${known.join(", ")}` : picture.file_name;
}

export function Thumb({ picture, side = 256, eager = false, alt = inWords(picture) }) {
  const { has_pictures: hasPictures } = useContext(Collection);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => setBroken(false), [picture.id]);
  if (!hasPictures || isBroken) {
    return html`<span class="no-picture" role="img" aria-label=${alt}>
      <span>${picture.tags.slice(0, 4).join(", ") || picture.file_name}</span></span>`;
  }
  return html`<img src=${thumbnail(picture.id, side)} alt=${alt} loading=${eager ? "eager" : "lazy"} decoding="async"
    onError=${() => setBroken(true)} />`;
}

export const Tile = ({ picture, note }) => html`
  <li class="tile">
    <a href=${to("look", [picture.id])}><${Thumb} picture=${picture} /></a>
    ${note && html`<span class="note">${note(picture)}</span>`}
  </li>`;

export const Grid = ({ pictures, note, label, kind = "" }) => html`
  <ul class=${`grid ${kind}`} aria-label=${label}>
    ${pictures.map((picture) => html`<${Tile} key=${picture.id} picture=${picture} note=${note} />`)}
  </ul>`;

// A list of `usePages`: the next page comes when its end is near, or by the button.
export function EndlessGrid({ pages, note, label, empty }) {
  const end = useRef(null);
  const { items, next, isLoading, error, more } = pages;
  useEffect(() => {
    if (next === null || error || !end.current) return undefined;
    const watcher = new IntersectionObserver((seen) => seen.some((own) => own.isIntersecting) && more(), {
      rootMargin: "600px",
    });
    watcher.observe(end.current);
    return () => watcher.disconnect();
  }, [more, next, error]);
  if (!items.length && next === null) return empty ?? null;
  return html`
    <${Grid} pictures=${items} note=${note} label=${label} />
    <div class="end" ref=${end}>
      ${error && html`<${Trouble} error=${error} retry=${more} />`}
      ${!error && isLoading && html`<${Waiting} />`}
      ${!error && !isLoading && next !== null && html`<button type="button" onClick=${more}>Show more</button>`}
    </div>`;
}
