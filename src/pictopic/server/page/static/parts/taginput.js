// A field for several tags, with suggestions: a combobox that the keyboard serves.
import { html, useRef, useState } from "../vendor/preact-htm.js";
import { allTags } from "../collection.js";
import { count } from "./basics.js";

const MOST = 8;

export function matching(all, text, taken) {
  const wanted = text.trim().toLowerCase();
  const free = all.filter(({ name }) => !taken.includes(name) && name.toLowerCase().includes(wanted));
  const begins = free.filter(({ name }) => name.toLowerCase().startsWith(wanted));
  return [...new Set([...begins, ...free])].slice(0, MOST);
}

export function TagInput({ tags, onChange, id }) {
  const [text, setText] = useState("");
  const [all, setAll] = useState([]);
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const field = useRef(null);
  const found = isOpen ? matching(all, text, tags) : [];
  const open = () => {
    setOpen(true);
    allTags().then(setAll, () => {});
  };
  const add = (name) => {
    const clean = name.trim();
    if (clean && !tags.includes(clean)) onChange([...tags, clean]);
    setText("");
    setActive(-1);
  };
  const keys = {
    ArrowDown: () => setActive(Math.min(active + 1, found.length - 1)),
    ArrowUp: () => setActive(Math.max(active - 1, -1)),
    Enter: () => add(found[active]?.name ?? text),
    ",": () => add(text),
    Escape: () => setOpen(false),
  };
  const press = (event) => {
    if (event.key === "Backspace" && !text && tags.length) onChange(tags.slice(0, -1));
    if (!keys[event.key]) return;
    event.preventDefault();
    if (event.key !== "Escape") setOpen(true);
    keys[event.key]();
  };
  return html`
    <div class="tag-input" onClick=${(event) => event.target === event.currentTarget && field.current.focus()}>
      ${tags.map((tag) => html`
        <span key=${tag} class="chip">${tag}
          <button type="button" aria-label=${`Remove ${tag}`} onClick=${() => onChange(tags.filter((own) => own !== tag))}>×</button></span>`)}
      <input id=${id} ref=${field} type="text" role="combobox" autocomplete="off" autocapitalize="none" spellcheck=${false}
        placeholder=${tags.length ? "and …" : "A tag, such as one of your own"} value=${text}
        aria-expanded=${found.length ? "true" : "false"} aria-controls=${`${id}-list`} aria-autocomplete="list"
        aria-activedescendant=${active >= 0 && found[active] ? `${id}-${active}` : undefined}
        onInput=${(event) => { setText(event.target.value); setActive(-1); open(); }}
        onFocus=${open} onClick=${open} onBlur=${() => setOpen(false)} onKeyDown=${press} />
      <ul id=${`${id}-list`} role="listbox" aria-label="Suggested tags" hidden=${!found.length}>
        ${found.map(({ name, count: number }, place) => html`
          <li key=${name} id=${`${id}-${place}`} role="option" aria-selected=${place === active ? "true" : "false"}
            onPointerDown=${(event) => { event.preventDefault(); add(name); }}>
            <span>${name}</span> <span class="hint">${count(number, "picture")}</span></li>`)}
      </ul>
    </div>`;
}
