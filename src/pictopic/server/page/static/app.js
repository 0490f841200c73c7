// The frame: which view is shown, the navigation, the form for the token.
import { html, render, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { events, get } from "./api.js";
import { Collection, forgetTags } from "./collection.js";
import { forgetLists, useKeys, useLoad } from "./hooks.js";
import { Icon, Loaded } from "./parts/basics.js";
import { Keys } from "./parts/keys.js";
import { TokenForm } from "./parts/token.js";
import { go, parse, to } from "./routes.js";
import { Look } from "./views/look.js";

// What is not seen first is loaded when it is wanted.
const VIEWS = {
  look: { title: "Look", view: async () => Look },
  search: { title: "Search", view: async () => (await import("./views/search.js")).Search },
  topics: { title: "Topics", view: async () => (await import("./views/topics.js")).Topics },
  tags: { title: "Tags", view: async () => (await import("./views/tags.js")).Tags },
  quality: { title: "Quality", view: async () => (await import("./views/quality.js")).Quality },
};

// Where each page of the history was scrolled to: its content comes later than the browser expects.
const scrolled = new Map();
history.scrollRestoration = "manual";

function useRoute() {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    let before = location.hash;
    const change = () => {
      scrolled.set(before, window.scrollY);
      before = location.hash;
      setRoute({ ...parse(location.hash), isBack: history.state?.seen === true });
      history.replaceState({ seen: true }, "");
    };
    history.replaceState({ seen: true }, "");
    window.addEventListener("hashchange", change);
    return () => window.removeEventListener("hashchange", change);
  }, []);
  return route;
}

function Navigation({ current }) {
  return html`
    <nav class="views" aria-label="Views">
      <ul>
        ${Object.entries(VIEWS).map(([name, { title }]) => html`
          <li key=${name}><a href=${to(name)} aria-current=${name === current ? "page" : undefined}>
            <${Icon} name=${name} /><span>${title}</span></a></li>`)}
      </ul>
    </nav>`;
}

function View({ route }) {
  const place = route.view in VIEWS ? route.view : "look";
  const loaded = useLoad(() => VIEWS[place].view(), [place]);
  const main = useRef(null);
  const where = [place, ...route.parts].join("/");
  const reached = useRef(where); // where one begins, the browser's own order holds
  // A new view is read from its top; back goes where one was.
  useLayoutEffect(() => {
    if (!loaded.data || reached.current === where) return;
    reached.current = where;
    window.scrollTo(0, route.isBack ? scrolled.get(location.hash) ?? 0 : 0);
    const heading = main.current?.querySelector("h1");
    if (heading && !main.current.contains(document.activeElement)) heading.focus({ preventScroll: true });
  }, [where, loaded.data]);
  return html`
    <main id="content" ref=${main} class="wide" tabindex="-1">
      <${Loaded} of=${loaded}>${(Own) => html`<${Own} key=${place} route=${route} />`}<//>
    </main>`;
}

function Header({ collection, onKeys, current }) {
  return html`
    <header class="bar">
      <div class="wide">
        <a class="brand" href=${to("look")}><img src="static/icon.svg" alt="" width="28" height="28" /> <span>pictopic</span></a>
        ${collection && html`<span class="name" title=${`${collection.n_pictures} pictures`}>${collection.name}</span>`}
        <${Navigation} current=${current} />
        <button type="button" class="round" aria-label="Keys and help" title="Keys and help (?)" onClick=${onKeys}>
          <${Icon} name="keys" /></button>
      </div>
    </header>`;
}

function App() {
  const route = useRoute();
  const [wantsToken, setWantsToken] = useState(false);
  const [visit, setVisit] = useState(0);
  const [showsKeys, setShowsKeys] = useState(false);
  events.onTokenWanted = () => setWantsToken(true);
  const collection = useLoad((signal) => get("collection", {}, signal), [visit]);
  useKeys((event) => {
    if (event.key === "?") setShowsKeys(true);
    if (event.key === "/") {
      event.preventDefault();
      go("search");
    }
  }, []);
  const enter = () => {
    forgetLists();
    forgetTags();
    setWantsToken(false);
    setVisit(visit + 1);
  };
  const skip = (event) => {
    event.preventDefault();
    document.getElementById("content")?.focus();
  };
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <${Header} collection=${collection.data} current=${route.view in VIEWS ? route.view : "look"} onKeys=${() => setShowsKeys(true)} />
    ${wantsToken
      ? html`<main id="content" class="wide" tabindex="-1"><${TokenForm} onDone=${enter} /></main>`
      : collection.data
        ? html`<${Collection.Provider} value=${collection.data}><${View} key=${visit} route=${route} /><//>`
        : html`<main id="content" class="wide" tabindex="-1"><${Loaded} of=${collection}>${() => null}<//></main>`}
    <div id="said" class="unseen" aria-live="polite"></div>
    ${showsKeys && html`<${Keys} view=${route.view} onClose=${() => setShowsKeys(false)} />`}`;
}

render(html`<${App} />`, document.getElementById("app"));
