// The form that somebody sees whose browser does not know the server's token yet.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { send } from "../api.js";
import { useTitle } from "../hooks.js";

export function TokenForm({ onDone }) {
  const [trouble, setTrouble] = useState(null);
  const field = useRef(null);
  useTitle("Token");
  useEffect(() => field.current.focus(), []);
  const enter = async (event) => {
    event.preventDefault();
    setTrouble(null);
    try {
      await send("POST", "session", { token: field.current.value });
      onDone();
    } catch (error) {
      setTrouble(error.status === 401 ? "That is not the token. Ask the person who started the server." : error.message);
      field.current.select();
    }
  };
  return html`
    <form class="card token" onSubmit=${enter}>
      <h1 tabindex="-1">This collection is private</h1>
      <p>The server was started with a token: a word that only those know who may look. Your browser keeps it until you close it.</p>
      <label for="token">Token</label>
      <input id="token" ref=${field} type="password" autocomplete="current-password" required
        aria-invalid=${trouble ? "true" : undefined} aria-describedby=${trouble ? "token-trouble" : undefined} />
      ${trouble && html`<p id="token-trouble" class="wrong" role="alert">${trouble}</p>`}
      <button class="main" type="submit">Open</button>
    </form>`;
}
