// What was decided so far, and how to take it away.
import { html } from "../vendor/preact-htm.js";
import { address, get } from "../api.js";
import { useLoad } from "../hooks.js";
import { Meaning, count } from "./basics.js";

export function Decided({ counts = null }) {
  const found = useLoad((signal) => (counts ? counts : get("decisions", { limit: 1 }, signal)), [counts?.n_accepted, counts?.n_rejected]);
  const known = counts ?? found.data;
  if (!known) return null;
  const total = known.n_accepted + known.n_rejected;
  return html`
    <div class="card decided">
      <p><strong>${count(total, "decision")}</strong> so far${total ? `: ${known.n_accepted} yes, ${known.n_rejected} no` : ""}.
        ${total ? "" : " Choose a tag, and say where it is missing or wrong."}</p>
      ${total > 0 && html`
        <p class="ways"><a class="button" href=${address("decisions/export", { format: "csv" })} download>Table (CSV)</a>
          <a class="button" href=${address("decisions/export", { format: "xmp" })} download>For photo programs (XMP)</a></p>`}
      <${Meaning} title="What happens with them">
        <p>Your pictures are never changed. The decisions are kept beside the model; take them with you as a table, or as XMP files that
          photo programs read when they lie beside the pictures. <code>pictopic update MODEL</code> lets the model learn from them.</p><//>
    </div>`;
}
