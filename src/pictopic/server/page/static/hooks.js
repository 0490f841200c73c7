// What views share: loading something, loading a list page by page, keys.
import { useCallback, useEffect, useRef, useState } from "./vendor/preact-htm.js";

// {data, error, reload}: both null while it loads.
export function useLoad(load, keys) {
  const [state, setState] = useState({ data: null, error: null, keys });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setState({ data: null, error: null, keys });
    Promise.resolve(load(controller.signal)).then(
      (data) => controller.signal.aborted || setState({ data, error: null, keys }),
      (error) => controller.signal.aborted || setState({ data: null, error, keys }),
    );
    return () => controller.abort();
  }, [...keys, attempt]);
  // What was loaded for other keys is not shown, not even for a moment.
  const isCurrent = keys.every((key, place) => key === state.keys[place]);
  return { ...(isCurrent ? state : { data: null, error: null }), reload: () => setAttempt(attempt + 1) };
}

const kept = new Map();
const MOST_KEPT = 20;
const START = { items: [], next: 0, total: null };

export function forgetLists(part = "") {
  for (const key of [...kept.keys()]) if (key.includes(part)) kept.delete(key);
}

// A list that grows: `load(offset, signal)` answers {items, next, total}.  Kept by its key, so that "back" finds it whole.
export function usePages(key, load) {
  const [state, setState] = useState({ key, ...START, ...kept.get(key), error: null });
  const running = useRef(null);
  const current = state.key === key ? state : { key, ...START, ...kept.get(key), error: null };
  const more = useCallback(async () => {
    if (running.current?.key === key || current.next === null) return;
    running.current?.controller.abort();
    const controller = new AbortController();
    const own = { key, controller };
    running.current = own;
    setState({ ...current, error: null });
    try {
      const found = await load(current.next, controller.signal);
      if (controller.signal.aborted) return;
      const whole = { items: [...current.items, ...found.items], next: found.next, total: found.total ?? null };
      kept.delete(key);
      kept.set(key, whole);
      if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
      running.current = null;
      setState({ key, ...whole, error: null });
    } catch (error) {
      if (running.current === own) running.current = null;
      if (!controller.signal.aborted) setState({ ...current, error });
    }
  }, [key, current.items, current.next]);
  useEffect(() => {
    if (!current.items.length && current.next === 0) more();
  }, [key]);
  useEffect(() => () => running.current?.controller.abort(), []);
  const isLoading = current.next !== null && !current.error && (running.current?.key === key || !current.items.length);
  return { ...current, isLoading, more };
}

export function isTyping(event) {
  return /^(input|textarea|select)$/i.test(event.target.tagName) && !/^(checkbox|radio)$/.test(event.target.type);
}

// Keys of the whole page; not those that are typed into a field, and no shortcuts of the browser.
export function useKeys(onKey, keys) {
  useEffect(() => {
    const listen = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || document.querySelector("dialog[open]")) return;
      onKey(event);
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, keys);
}

export function useTitle(title) {
  useEffect(() => {
    document.title = `${title} · pictopic`;
  }, [title]);
}

// Said by screen readers; others see it in the view.
export function announce(text) {
  const place = document.getElementById("said");
  if (place) place.textContent = text;
}
