// All keys, shown by "?".
import { html } from "../vendor/preact-htm.js";
import { Dialog } from "./basics.js";

const KEYS = [
  ["Everywhere", "", [["?", "this list"], ["/", "search"], ["Tab", "next thing to press"]]],
  ["Look", "look", [["Ctrl V", "look at the picture you copied (or search with it)"], ["Tab, Enter", "show which parts of the picture spoke for a word"]]],
  ["Map", "topics", [["← ↑ ↓ →", "move"], ["+ −", "nearer, farther"], ["0", "the whole map"], ["Enter", "open the picture in the middle"]]],
  ["Review of tags", "tags", [["A or →", "has it"], ["R or ←", "does not have it"], ["Space", "skip"], ["U", "undo"]]],
];

export const Keys = ({ view, onClose }) => html`
  <${Dialog} title="Keys" onClose=${onClose}>
    ${KEYS.map(([title, own, keys]) => html`
      <section key=${title} class=${own === view ? "keys here" : "keys"}>
        <h3>${title}</h3>
        <dl>${keys.map(([key, text]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}</dl>
      </section>`)}
  <//>`;
