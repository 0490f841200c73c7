// Ways to bring a picture: drop, choose, photograph, paste.
import { html, useContext, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { Collection } from "../collection.js";
import { bring, imageOf } from "../upload.js";
import { Icon, Trouble } from "./basics.js";

// Takes what is dropped or pasted anywhere in the page; answers whether something is held above it, and a function for files.
export function useBrought(onBrought) {
  const { max_upload: maxUpload, has_pictures: hasPictures } = useContext(Collection);
  const [isOver, setOver] = useState(false);
  const [error, setError] = useState(null);
  const latest = useRef(onBrought);
  latest.current = onBrought;
  const take = async (file) => {
    setError(null);
    if (!file) {
      setError(new Error("That is no picture. Take a JPEG, PNG or another picture file."));
      return;
    }
    try {
      latest.current(await bring(file, maxUpload));
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    if (!hasPictures) return undefined;
    const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    const listeners = {
      dragover: (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(true);
      },
      dragleave: (event) => event.relatedTarget === null && setOver(false),
      drop: (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        take(imageOf(event.dataTransfer));
      },
      paste: (event) => {
        const file = imageOf(event.clipboardData);
        if (file) take(file);
      },
    };
    for (const [name, listen] of Object.entries(listeners)) window.addEventListener(name, listen);
    return () => {
      for (const [name, listen] of Object.entries(listeners)) window.removeEventListener(name, listen);
    };
  }, [hasPictures]);
  return { isOver, error, take };
}

export function PickButton({ onFile, children, camera = false, kind = "main" }) {
  const field = useRef(null);
  const picked = () => {
    const file = field.current.files[0];
    field.current.value = "";
    if (file) onFile(file);
  };
  return html`
    <button type="button" class=${`${kind}${camera ? " camera" : ""}`} onClick=${() => field.current.click()}>
      <${Icon} name=${camera ? "camera" : "upload"} />${children}</button>
    <input class="unseen" type="file" accept="image/*" capture=${camera ? "environment" : undefined} ref=${field} tabindex="-1"
      aria-hidden="true" onChange=${picked} />`;
}

export const DropZone = ({ brought }) => html`
  <div class=${brought.isOver ? "drop over" : "drop"}>
    <${Icon} name="look" />
    <p class="big">${brought.isOver ? "Let it go here" : html`<span class="by-mouse">Drop a picture here</span><span class="by-hand">Show a picture</span>`}</p>
    <p class="ways">
      <${PickButton} onFile=${brought.take}>Choose a picture<//>
      <${PickButton} onFile=${brought.take} camera kind="">Take a photo<//>
    </p>
    <p class="hint"><span class="by-mouse">or paste one with <kbd>Ctrl V</kbd>. </span>It is sent to this server only, and not kept.</p>
  </div>
  ${brought.error && html`<${Trouble} error=${brought.error} />`}`;
