// One picture: what the model says of it, why, and which others are like it.
import { html, useContext, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { get, getImage, sendPicture, sendPictureForImage, thumbnail } from "../api.js";
import { Collection } from "../collection.js";
import { announce, useLoad, useTitle } from "../hooks.js";
import { Bars } from "../parts/bars.js";
import { Empty, Loaded, Trouble, count } from "../parts/basics.js";
import { DropZone, PickButton, useBrought } from "../parts/drop.js";
import { Grid, inWords } from "../parts/pictures.js";
import { go, to } from "../routes.js";
import { upload } from "../upload.js";

const UPLOADED = "yours";
const N_BARS = 8;
const N_SIMILAR = 24;
const HOVER = 180; // milliseconds before an explanation is asked for

export function Look({ route }) {
  const id = route.parts[0] ?? "";
  const { has_pictures: hasPictures } = useContext(Collection);
  const brought = useBrought(({ number }) => go("look", [UPLOADED, String(number)]));
  if (id === UPLOADED && upload.file) return html`<${Found} key=${upload.number} brought=${brought} />`;
  if (id && id !== UPLOADED && !hasPictures) return html`<${Described} key=${id} id=${id} />`;
  if (id && id !== UPLOADED) return html`<${Found} key=${id} id=${id} brought=${brought} />`;
  return html`<${Start} brought=${brought} />`;
}

function Start({ brought }) {
  const collection = useContext(Collection);
  useTitle("Look");
  if (!collection.has_pictures) {
    return html`
      <h1 tabindex="-1">A collection without pictures</h1>
      <${Empty} title="There is nothing to look at">
        The model was learnt from tags or counts, so that it cannot look at a picture. See what it learnt:
        <a href=${to("search")}>search</a>, <a href=${to("topics")}>topics</a>.<//>`;
  }
  const about = [collection.has_classes && "which class it is", collection.has_tags && "which tags fit"].filter(Boolean).join(", ");
  return html`
    <div class="start">
      <h1 tabindex="-1">What is in this picture?</h1>
      <p class="lead">Show pictopic a picture. It says ${about ? `${about}, ` : ""}and which of your
        ${" "}${count(collection.n_pictures, "picture")} are most like it.</p>
      <${DropZone} brought=${brought} />
      <${Samples} n=${collection.n_pictures} />
    </div>`;
}

// A few from everywhere in the collection: never all of it.
function Samples({ n }) {
  const [shuffle, setShuffle] = useState(0);
  const parts = Math.min(12, n);
  const found = useLoad(async (signal) => {
    const offsets = Array.from({ length: parts }, (_, part) => Math.floor(((part + Math.random()) * n) / parts));
    const pages = await Promise.all(offsets.map((offset) => get("pictures", { offset, limit: 1 }, signal)));
    const pictures = new Map(pages.flatMap((page) => page.pictures).map((picture) => [picture.id, picture]));
    return [...pictures.values()];
  }, [shuffle, n]);
  return html`
    <section class="samples">
      <div class="line"><h2>Or take one of yours</h2>
        <button type="button" class="quiet" onClick=${() => setShuffle(shuffle + 1)}>Show others</button></div>
      <${Loaded} of=${found}>${(pictures) => html`<${Grid} pictures=${pictures} label="Some pictures of the collection" kind="small" />`}<//>
    </section>`;
}

function Found({ id, brought }) {
  const found = useLoad(
    (signal) => id
      ? get(`pictures/${id}/look`, { k: N_BARS, similar: N_SIMILAR }, signal)
      : sendPicture("look", { k: N_BARS, similar: N_SIMILAR }, upload.file, signal),
    [id],
  );
  const picture = found.data?.picture;
  const title = id ? picture?.file_name ?? "Picture" : upload.file.title;
  const [pinned, setPinned] = useState(null);
  const why = useWhy(id, pinned);
  useTitle(title);
  useEffect(() => {
    if (!found.data) return;
    const { classes, tags, similar } = found.data;
    const best = [classes[0] && `class ${classes[0].name}`, tags.length && `tags ${tags.slice(0, 3).map((tag) => tag.name).join(", ")}`];
    announce(`Found: ${[...best, count(similar.length, "similar picture")].filter(Boolean).join("; ")}`);
  }, [found.data]);
  const bars = { shown: why.name, pinned, onShow: why.show, onPin: (name) => setPinned(pinned === name ? null : name) };
  return html`
    <div class="line top-line">
      <h1 tabindex="-1" class="file">${title}</h1>
      <span class="ways"><${PickButton} onFile=${brought.take} kind="">Another picture<//>
        <a class="button" href=${to("search", [], id ? { like: id } : { picture: UPLOADED })}>Search with it</a></span>
    </div>
    ${brought.error && html`<${Trouble} error=${brought.error} />`}
    <div class="looked">
      <figure class="card subject">
        <${Subject} id=${id} picture=${picture} title=${title} why=${why} />
      </figure>
      <div class="answers">
        <${Loaded} of=${found} text="Looking at the picture…">${(data) => html`<${Answers} data=${data} bars=${bars} />`}<//>
        <${Known} picture=${picture} />
      </div>
    </div>
    ${found.data?.similar.length > 0 && html`
      <section><h2>Most like it</h2>
        <p>Pictures of your collection that the model takes for the most similar: 1.00 would be the same.</p>
        <${Grid} pictures=${found.data.similar} label="Similar pictures" note=${(own) => own.similarity.toFixed(2)} /></section>`}`;
}

// Of a collection without pictures, what is known.
function Described({ id }) {
  const found = useLoad((signal) => get(`pictures/${id}`, {}, signal), [id]);
  const title = found.data?.file_name ?? "Picture";
  useTitle(title);
  return html`
    <h1 tabindex="-1" class="file">${title}</h1>
    <${Loaded} of=${found}>${(picture) => html`
      <${Known} picture=${picture} />
      <p class="hint">The model was learnt without the pictures themselves, so that there is nothing to look at.</p>`}<//>`;
}

function Answers({ data, bars }) {
  const sure = data.tags.filter((tag) => tag.is_sure).length;
  const isCalibrated = data.tags.length > 0 && typeof data.tags[0].probability === "number";
  const tags = isCalibrated
    ? data.tags.map((tag) => ({ ...tag, score: tag.probability })).sort((a, b) => b.score - a.score)
    : data.tags;
  return html`
    ${data.classes.length > 0 && html`
      <section class="card"><h2>Class</h2><p>How probable each is.</p>
        <${Bars} items=${data.classes.filter(({ score }, place) => place < 3 || score >= 0.01)} label="Classes" ...${bars} /></section>`}
    ${data.tags.length > 0 && html`
      <section class="card"><h2>Tags</h2>
        <p>${isCalibrated
          ? `How probable it is that each belongs there. ${sure ? "A tick: sure enough to write it down." : "None is sure enough to write it down."}`
          : "Best first, each with its share of all words that one would say of it."}</p>
        <${Bars} items=${tags} label="Tags" most=${isCalibrated ? 1 : Math.max(...tags.map((tag) => tag.score))} ...${bars} /></section>`}`;
}

// The picture, or the picture with the regions that spoke for a word.
function Subject({ id, picture, title, why }) {
  const { has_classes: hasClasses, has_tags: hasTags } = useContext(Collection);
  const [isBroken, setBroken] = useState(false);
  const shown = why.address;
  const source = id ? thumbnail(id, 512) : upload.url;
  const alt = why.name && shown ? `${title}: red parts speak for ${why.name}, blue ones against it` : picture ? inWords(picture) : title;
  return html`
    <div class="frame">
      ${isBroken
        ? html`<span class="no-picture" role="img" aria-label=${title}>Your browser cannot show this kind of picture.</span>`
        : html`<img src=${source} alt=${shown ? "" : alt} onError=${() => setBroken(true)} />`}
      ${shown && html`<img class="overlay" src=${shown} alt=${alt} />`}
      ${why.isLoading && html`<span class="spinner corner" />`}
    </div>
    <figcaption class="why" aria-live="polite">
      ${why.error
        ? html`<span class="wrong">${why.error}</span>`
        : why.name
          ? html`<span>Why <strong>${why.name}</strong>:</span> <span class="for">red speaks for it</span> <span class="against">blue against</span>`
          : (hasClasses || hasTags) && html`<span class="hint">Point at a class or tag, or press it, to see which parts of the picture spoke for it.</span>`}
    </figcaption>`;
}

function Known({ picture }) {
  if (!picture) return null;
  const { labels, tags } = picture;
  if (!labels?.length && !tags.length) return html`<p class="hint">Nothing was known of this picture when the model learnt.</p>`;
  return html`
    <div class="known"><span class="hint">In your collection:</span>
      ${(labels ?? []).map((label) => html`<a class="chip label" href=${to("search", [], { label })}>${label}</a>`)}
      ${tags.map((tag) => html`<a class="chip" href=${to("tags", [tag])}>${tag}</a>`)}</div>`;
}

// The explanation of the name that is pointed at, or else of the one that was pressed; each is asked for once.
function useWhy(id, pinned) {
  const [pointed, setPointed] = useState(null);
  const [state, setState] = useState({});
  const known = useMemo(() => new Map(), [id]);
  const number = useRef(0);
  const name = pointed ?? pinned;
  useEffect(() => {
    const own = ++number.current;
    if (!name) {
      setState({});
      return undefined;
    }
    const controller = new AbortController();
    const load = async () => {
      try {
        if (!known.has(name)) {
          setState({ name, isLoading: true });
          known.set(name, await explained(id, name, controller.signal));
        }
        if (own === number.current) setState({ name, address: known.get(name) });
      } catch (error) {
        if (own === number.current && !controller.signal.aborted) setState({ name, error: error.message });
      }
    };
    const timer = setTimeout(load, known.has(name) ? 0 : HOVER);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [name]);
  useEffect(() => () => known.forEach((url) => URL.revokeObjectURL(url)), [known]);
  return { ...state, show: setPointed };
}

async function explained(id, name, signal) {
  const blob = id
    ? await getImage(`pictures/${id}/explain`, { name }, signal)
    : await sendPictureForImage("explain", { name }, upload.file, signal);
  return URL.createObjectURL(blob);
}
