// Addresses within the page: "#/view/part/part?name=value".

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...parts] = path.split("/").map(decoded);
  return { view: view || "look", parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function to(view, parts = [], query = {}) {
  const path = [view, ...parts].map(encodeURIComponent).join("/");
  const filled = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(filled).toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

export function go(...where) {
  location.hash = to(...where);
}
