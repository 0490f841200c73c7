// Names with scores as bars; each can be pressed to see which parts of the picture spoke for it.
import { html } from "../vendor/preact-htm.js";
import { Icon, percent } from "./basics.js";

export function Bars({ items, label, shown, onShow, onPin, pinned, most = 1 }) {
  return html`
    <ul class="bars" aria-label=${label} onPointerLeave=${() => onShow(null)}>
      ${items.map(({ name, score, is_sure: isSure }) => html`
        <li key=${name}>
          <button type="button" class=${isSure === false ? "scored unsure" : "scored"} aria-pressed=${pinned === name ? "true" : "false"}
            data-shown=${shown === name ? "" : undefined}
            onPointerEnter=${(event) => event.pointerType === "mouse" && onShow(name)}
            onFocus=${() => onShow(name)} onBlur=${() => onShow(null)} onClick=${() => onPin(name)}>
            <span class="what">${name}${isSure && html`<span class="sure" title="The model is sure"><${Icon} name="yes" /><span class="unseen">, sure</span></span>`}</span>
            <span class="track"><span style=${{ width: `${Math.max(1, Math.min(100, (100 * score) / most))}%` }} /></span>
            <span class="score">${percent(score)}</span>
          </button>
        </li>`)}
    </ul>`;
}
