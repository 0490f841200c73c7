// The picture that somebody brought: kept while the page is open, never stored.

const LONGEST_SIDE = 1600;
const FORM = 2000; // bytes that a form needs around its file

export const upload = { file: null, url: null, number: 0 };

export async function bring(file, maxBytes) {
  const room = maxBytes - FORM;
  const small = file.size > room ? await scaledDown(file, room) : file;
  if (upload.url) URL.revokeObjectURL(upload.url);
  Object.assign(upload, { file: small, url: URL.createObjectURL(small), number: upload.number + 1 });
  upload.file.title = file.name || "Your picture";
  return upload;
}

// At most 1600 pixels a side, which is more than the model looks at, and fewer if that is still too much to send.
async function scaledDown(file, room) {
  let image;
  try {
    image = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    throw new Error("The picture is too large for this server, and your browser cannot read it to make it smaller.");
  }
  for (let side = LONGEST_SIDE; side > 100; side = Math.round(side / 1.5)) {
    const small = await asJpeg(image, Math.min(1, side / Math.max(image.width, image.height)));
    if (small.size <= room) return small;
  }
  throw new Error("The picture is too large for this server. Take a smaller one.");
}

async function asJpeg(image, factor) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(image.width * factor));
  canvas.height = Math.max(1, Math.round(image.height * factor));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.92));
  return new File([blob], "picture.jpg", { type: "image/jpeg" });
}

export function imageOf(transfer) {
  return [...(transfer?.files ?? [])].find((file) => !file.type || file.type.startsWith("image/")) ?? null;
}
