// Small things that every view uses.
import { html, useEffect, useRef } from "../vendor/preact-htm.js";

const PATHS = {
  look: "M3 5h18v14H3zM3 15l5-5 5 5 3-3 5 5M15.5 9.5h.01",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 21 21",
  topics: "M7 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM17 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM16 13a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM6 16a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z",
  tags: "M3 4h8l10 10-7 7L4 11zM8 8.5h.01",
  quality: "M4 20V10M10 20V4M16 20v-7M22 20H2",
  upload: "M12 16V4M7 9l5-5 5 5M4 16v4h16v-4",
  camera: "M4 7h4l2-3h4l2 3h4v13H4zM12 10a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z",
  yes: "M5 13l4 4L19 7",
  no: "M6 6l12 12M18 6 6 18",
  undo: "M9 6 4 11l5 5M4 11h10a5 5 0 0 1 0 10h-3",
  skip: "M5 5l8 7-8 7zM19 5v14",
  keys: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 18h.01",
};

export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;

// What the server refuses it refuses again, except when it had no time.
const mayHelp = ({ status }) => !(status >= 400 && status < 500) || status === 408 || status === 429;

export const Trouble = ({ error, retry }) => html`
  <div class="trouble" role="alert">
    <p>${error.message}</p>
    ${retry && mayHelp(error) && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;

export const Waiting = ({ text = "Loading…" }) => html`<p class="waiting" role="status"><span class="spinner" /> ${text}</p>`;

export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2><p>${children}</p></div>`;

// What was loaded, or that it is still loading, or why it is not there.
export function Loaded({ of, text, children }) {
  if (of.error) return html`<${Trouble} error=${of.error} retry=${of.reload} />`;
  return of.data === null ? html`<${Waiting} text=${text} />` : children(of.data);
}

export function Dialog({ title, onClose, children }) {
  const own = useRef(null);
  useEffect(() => {
    own.current.showModal();
  }, []);
  return html`
    <dialog ref=${own} aria-labelledby="dialog-title" onClose=${onClose}
      onClick=${(event) => event.target === own.current && own.current.close()}>
      <h2 id="dialog-title">${title}</h2>
      ${children}
      <button type="button" onClick=${() => own.current.close()}>Close</button>
    </dialog>`;
}

// A word of the trade, and what it means.
export const Meaning = ({ title, children }) => html`
  <details class="meaning"><summary>${title}</summary><div>${children}</div></details>`;

export const percent = (value) => `${value > 0 && value < 0.01 ? "<1" : Math.round(100 * value)} %`;

export const count = (number, one, several = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : several}`;
