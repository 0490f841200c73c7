// What the server says of the collection, for every view.
import { createContext } from "./vendor/preact-htm.js";
import { get } from "./api.js";

export const Collection = createContext(null);

const MOST_PAGES = 5;
let tags = null;

export function forgetTags() {
  tags = null;
}

// The most frequent tags, for suggestions: asked for once.
export function allTags() {
  tags ??= loadTags().catch((error) => {
    tags = null;
    throw error;
  });
  return tags;
}

async function loadTags() {
  const found = [];
  let offset = 0;
  for (let page = 0; page < MOST_PAGES && offset !== null; page++) {
    const answer = await get("tags", { offset, limit: 1000 });
    found.push(...answer.tags);
    offset = answer.next_offset;
  }
  return found;
}
