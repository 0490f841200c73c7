// One picture after the other: does it have the tag?
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { get, put, thumbnail } from "../api.js";
import { announce, forgetLists, useKeys, useTitle } from "../hooks.js";
import { Empty, Icon, Trouble, Waiting, percent } from "../parts/basics.js";
import { Decided } from "../parts/decided.js";
import { Thumb } from "../parts/pictures.js";
import { to } from "../routes.js";

const PAGE = 30;
const FEW = 6; // when so many are left, more are asked for
const KINDS = {
  missing: { title: (tag) => `Where is “${tag}” missing?`, hint: "Nobody gave it this tag. The model thinks it probably belongs there." },
  doubtful: { title: (tag) => `Where is “${tag}” wrong?`, hint: "It has this tag. The model has its doubts." },
};

export function Review({ tag, kind }) {
  const { title, hint } = KINDS[kind];
  const review = useReview(tag, kind);
  const panel = useRef(null);
  const { picture, error, isLoading, counts, n, total } = review;
  useTitle(title(tag));
  useKeys((event) => {
    // A button that has the focus is pressed by the space bar itself.
    if (event.key === " " && event.target.closest("button, a, summary")) return;
    const action = { a: review.accept, ArrowRight: review.accept, r: review.reject, ArrowLeft: review.reject, u: review.undo, " ": review.skip }[
      event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }, [review]);
  const press = (action) => (event) => {
    action();
    if (event.detail) panel.current?.focus({ preventScroll: true }); // by mouse: the keys go on
  };
  return html`
    <p class="back"><a href=${to("tags", [tag])}>← ${tag}</a></p>
    <h1 tabindex="-1" ref=${panel}>${title(tag)}</h1>
    ${error && html`<${Trouble} error=${error} retry=${review.retry} />`}
    ${!picture && isLoading && html`<${Waiting} text="Asking the model…" />`}
    ${!picture && !isLoading && !error && html`
      <${Empty} title=${n ? "That was all" : "Nothing to review"}>
        ${n ? "You have seen every picture of this list." : "The model finds no picture to ask you about."}${" "}
        <a href=${to("tags", [tag])}>Back to the tag</a>${n > 0 && html`, or <button type="button" class="quiet" onClick=${review.undo}>undo the last one</button>`}.<//>`}
    ${picture && html`
      <div class="review">
        <figure class="card subject" key=${picture.id}>
          <div class="frame"><${Thumb} picture=${picture} side=${512} eager alt=${`${picture.file_name}: does it show ${tag}?`} /></div>
          <figcaption class="hint"><a href=${to("look", [picture.id])}>${picture.file_name}</a>${picture.tags.length > 0 && `: ${picture.tags.join(", ")}`}</figcaption>
        </figure>
        <div class="decide">
          <p class="big">Does it have <strong>${tag}</strong>?</p>
          <p class="hint">${hint} Probability: ${percent(picture.probability)}.</p>
          <div class="decide-buttons">
            <button type="button" class="yes" onClick=${press(review.accept)}><${Icon} name="yes" /> Has it <kbd>A</kbd></button>
            <button type="button" class="no" onClick=${press(review.reject)}><${Icon} name="no" /> Does not <kbd>R</kbd></button>
            <button type="button" onClick=${press(review.skip)}><${Icon} name="skip" /> Skip <kbd>Space</kbd></button>
            <button type="button" disabled=${!n} onClick=${press(review.undo)}><${Icon} name="undo" /> Undo <kbd>U</kbd></button>
          </div>
          <p class="hint" role="status">${n ? `${n} seen, ` : ""}${Math.max(0, total - n)} to go</p>
        </div>
      </div>`}
    <${Decided} counts=${counts} />`;
}

// The queue of pictures, what was said of those before, and the ways on.
function useReview(tag, kind) {
  const [state, setState] = useState({ queue: [], done: [], isLoading: true, isOver: false, error: null, counts: null, total: 0 });
  const saving = useRef(Promise.resolve()); // one after the other, in order
  const isLoading = useRef(false);
  const latest = useRef(state);
  latest.current = state;
  const change = (part) => setState((old) => ({ ...old, ...(typeof part === "function" ? part(old) : part) }));

  const load = async () => {
    if (isLoading.current) return;
    isLoading.current = true;
    change({ isLoading: true, error: null });
    try {
      await saving.current;
      // Decided ones are left out by the server: only those that are not decided count.
      const { queue, done } = latest.current;
      const offset = queue.length + done.filter(({ decision }) => decision === "undecided").length;
      const found = await get(kind, { tag, offset, limit: PAGE });
      change((old) => {
        const seen = new Set([...old.queue, ...old.done.map((own) => own.picture)].map((picture) => picture.id));
        const fresh = found.pictures.filter((picture) => !seen.has(picture.id));
        const nDecided = old.done.filter(({ decision }) => decision !== "undecided").length;
        return { queue: [...old.queue, ...fresh], isOver: found.next_offset === null || !fresh.length, isLoading: false, total: found.total + nDecided };
      });
    } catch (error) {
      change({ error, isLoading: false });
    }
    isLoading.current = false;
  };
  useEffect(() => {
    load();
    return () => forgetLists(`tag ${tag}`);
  }, []);
  useEffect(() => {
    if (state.queue.length <= FEW && !state.isOver && !state.error) load();
    for (const picture of state.queue.slice(1, 4)) new Image().src = thumbnail(picture.id, 512);
  }, [state.queue.length]);

  const save = (picture, decision) => {
    saving.current = saving.current.then(() => put("decisions", { picture: picture.id, tag, decision })).then(
      (counts) => change({ counts, error: null }),
      // What was not saved is asked again.
      (error) => change((old) => ({
        error,
        queue: [picture, ...old.queue.filter((own) => own.id !== picture.id)],
        done: old.done.filter((own) => own.picture.id !== picture.id),
      })),
    );
  };
  const decide = (decision) => () => {
    const { queue: [picture, ...queue], done } = latest.current;
    if (!picture) return;
    change({ queue, done: [...done, { picture, decision }] });
    if (decision !== "undecided") save(picture, decision);
    announce({ accepted: "Has it", rejected: "Does not have it", undecided: "Skipped" }[decision]);
  };
  const undo = () => {
    const { queue, done } = latest.current;
    const last = done.at(-1);
    if (!last) return;
    change({ queue: [last.picture, ...queue], done: done.slice(0, -1) });
    if (last.decision !== "undecided") save(last.picture, "undecided");
    announce("Undone");
  };
  return {
    ...state, picture: state.queue[0], n: state.done.length, undo, accept: decide("accepted"), reject: decide("rejected"), skip: decide("undecided"),
    retry: () => { change({ error: null }); load(); },
  };
}
