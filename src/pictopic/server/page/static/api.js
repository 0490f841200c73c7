// Questions to the server, and errors in words that say what to do.

const ROOT = "api/v1/";
const MOST_RETRIES = 4;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// The page replaces this: it shows the form for the token.
export const events = { onTokenWanted: () => {} };

export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === "") continue;
    for (const own of Array.isArray(value) ? value : [value]) query.append(name, own);
  }
  const text = query.toString();
  return ROOT + path + (text ? `?${text}` : "");
}

export const get = (path, parameters, signal) => json(address(path, parameters), { signal });

export const put = (path, body) => send("PUT", path, body);

export function send(method, path, body) {
  return json(address(path), { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

export const sendPicture = (path, parameters, picture, signal) =>
  json(address(path, parameters), { method: "POST", body: form(picture), signal });

export const getImage = async (path, parameters, signal) => (await ask(address(path, parameters), { signal })).blob();

export const sendPictureForImage = async (path, parameters, picture, signal) =>
  (await ask(address(path, parameters), { method: "POST", body: form(picture), signal })).blob();

export const thumbnail = (id, side = 256) => address(`thumbnails/${id}`, { side });

function form(picture) {
  const data = new FormData();
  data.append("picture", picture, picture.name || "picture.jpg");
  return data;
}

async function json(url, options) {
  const answer = await ask(url, options);
  return answer.status === 204 ? null : answer.json();
}

async function ask(url, options) {
  for (let attempt = 0; ; attempt++) {
    let answer;
    try {
      answer = await fetch(url, { credentials: "same-origin", ...options });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "The server does not answer. See whether “pictopic serve” still runs, then try again.");
    }
    if (answer.ok) return answer;
    if (answer.status === 429 && attempt < MOST_RETRIES) {
      await wait(Number(answer.headers.get("Retry-After")) || 1, options.signal);
      continue;
    }
    const isLogin = options.method === "POST" && url === address("session");
    if (answer.status === 401 && !isLogin) events.onTokenWanted();
    throw new ApiError(answer.status, readable(answer.status, await problem(answer)));
  }
}

function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("", "AbortError"));
    });
  });
}

async function problem(answer) {
  try {
    const found = await answer.json();
    return found.detail || found.title || "";
  } catch {
    return "";
  }
}

const ADVICE = {
  401: "This server wants its token.",
  408: "Sending took too long. Try again, or take a smaller picture.",
  413: "The picture is too large for this server. Take a smaller one.",
  429: "The server has too much to do. Try again in a moment.",
  504: "The answer took too long. Try again in a moment.",
};

function readable(status, detail) {
  if (ADVICE[status]) return ADVICE[status];
  if (status >= 500) return "Something went wrong in the server; its log says what. Try again.";
  const text = detail || "The server refused this.";
  const sentence = text[0].toUpperCase() + text.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
